"""The coverage study, reduced to 400 data sets per row (the full one: python tests/benchmarks/coverage_study.py)."""

import numpy as np
import pytest
from coverage_study import DATA_SETS, PUBLISHED, figures, study

REDUCED = 400


@pytest.fixture(scope="module")
def found():
    return {setting: study(*setting, data_sets=REDUCED) for setting in PUBLISHED}


@pytest.mark.parametrize(
    ("setting", "method"), [(setting, method) for setting, rows in PUBLISHED.items() for method in rows]
)
def test_coverage_and_width(found, setting, method):
    """Two simulations of a coverage differ by 4 standard errors once in 16,000: for 36 figures, 0.2% of seeds.

    At 100% a binomial standard error is 0, so one data set more or less in 100 is allowed as well. A mean width is
    allowed 4 standard errors, from its spread over data sets, and 0.05 for the one decimal of the published figure.
    """
    published, one = PUBLISHED[setting][method], found[setting].sel(procedure=method)
    *shares, width = figures(one)
    for expected, share in zip(published[:2], shares, strict=True):
        rate = expected / 100
        allowed = 400 * np.sqrt(rate * (1 - rate) * (1 / REDUCED + 1 / DATA_SETS)) + 1
        assert abs(share - expected) <= allowed
    assert abs(width - published[2]) <= 400 * one["width_se"].item() * np.sqrt(1 + REDUCED / DATA_SETS) + 0.05
