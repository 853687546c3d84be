"""Variance components by moments: closed forms of a balanced table, expectations by simulation, the model's answer."""

import numpy as np
import pytest
from tests.boards import counted

import evalbayes as eb
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist import variance_components
from evalbayes.frequentist.partition import _henderson


def test_balanced_table_is_the_textbook_analysis_of_variance():
    """Mean squares of rows, columns and residual, and within cells, by loops (Searle et al. 1992, section 4.3)."""
    rng = np.random.default_rng(2)
    configs, tasks, runs = 5, 7, 4
    k = rng.binomial(runs, rng.random((configs, 1)) * rng.random(tasks), size=(configs, tasks))
    board = counted(k, runs)
    y = k / runs
    rows, columns, mean = y.mean(axis=1), y.mean(axis=0), y.mean()
    ms_residual = sum((y[c, t] - rows[c] - columns[t] + mean) ** 2 for c in range(configs) for t in range(tasks)) / (
        (configs - 1) * (tasks - 1)
    )
    within = np.mean([[p * (1 - p) * runs / (runs - 1) for p in row] for row in y])
    expected = {
        "config": rows.var(ddof=1) - ms_residual / tasks,
        "task": columns.var(ddof=1) - ms_residual / configs,
        "interaction": ms_residual - within / runs,
        "run": within,
    }
    found = variance_components(board)
    for name, value in expected.items():
        assert found["estimate"].sel(component=name).item() == pytest.approx(value, abs=1e-12), name
    assert found["interval"].isnull().all()
    assert (found["reason"] == "no interval by moments: posterior.variance_components has one").all()


def test_henderson_is_unbiased_whatever_the_design():
    """Crossed and nested groups of very unequal size, one agent run with the weak models alone.

    The mean of 4,000 tables lies within 5 of its standard errors of the truth: one false alarm in a million for each.
    """
    rng, tables = np.random.default_rng(4), 4000
    model = np.array(list("aaabbbccddddeeeeeeffgg"))
    maker = np.array([{"a": "P", "b": "P", "c": "P", "d": "Q", "e": "Q", "f": "R", "g": "R"}[m] for m in model])
    agent = np.array(list("xyzxyzxyxyzwwwwwwwxxyz"))
    labels, sds = {"agent": agent, "maker": maker, "model": model}, {"agent": 0.5, "maker": 1.0, "model": 0.7}
    found = []
    for _ in range(tables):
        effect = 0.3 * rng.standard_normal(model.size)
        for name, values in labels.items():
            levels, which = np.unique(values, return_inverse=True)
            effect = effect + sds[name] * rng.standard_normal(levels.size)[which]
        found.append(_henderson(effect, labels))
    for name, sd in {**sds, "residual": 0.3}.items():
        values = np.array([one[name] for one in found])
        assert abs(values.mean() - sd**2) < 5 * values.std() / np.sqrt(tables), name


def test_missing_cells_leave_the_whole_tables_answer_where_rates_are_additive():
    """Rates that are exactly row plus column: any connected part of the table has the same effects, residual 0."""
    trials = np.full((4, 6), 20)
    k = np.array([2, 4, 6, 8])[:, None] + np.array([0, 1, 3, 5, 8, 11])
    whole = variance_components(counted(k, trials))["estimate"]
    trials[0, 1] = trials[2, 4] = trials[3, 0] = 0
    part = variance_components(counted(np.where(trials, k, 0), trials))["estimate"]
    for name in ("config", "task"):
        assert part.sel(component=name).item() == pytest.approx(whole.sel(component=name).item(), abs=1e-12)


def test_one_run_a_cell_has_no_part_for_runs():
    rng = np.random.default_rng(0)
    found = variance_components(counted(rng.integers(0, 2, (4, 9)), 1))
    assert found["estimate"].sel(component=["config", "task"]).notnull().all()
    assert found["estimate"].sel(component=["interaction", "run"]).isnull().all()
    assert "no cell was run twice" in found["reason"].sel(component="run").item()


def test_model_or_scaffold_is_answered_alike_by_moments_and_by_the_model():
    """On a simulated board with known parts: true shares, both sides within what 30 configs allow."""
    rng = np.random.default_rng(12)
    agent, model = np.repeat(list("uvwxyz"), 5), np.tile(list("abcde"), 6)
    effect = np.repeat(0.2 * rng.standard_normal(6), 5) + np.tile(1.2 * rng.standard_normal(5), 6)
    rate = 1 / (1 + np.exp(-(effect[:, None] + 1.5 * rng.standard_normal(60))))
    board = counted(rng.binomial(4, rate), 4).assign_coords(agent=("config", agent), model=("config", model))
    moments = variance_components(board, config_groups=("agent", "model"))
    fit = eb.fit(board, "crossed", config_groups="agent, model", draws=400)
    mine = eb.posterior.variance_components(fit)
    print(mine.attrs["sentence"])
    for component in ("agent", "model", "task", "run"):
        lower, upper = mine["interval"].sel(component=component).values
        assert lower < moments["estimate"].sel(component=component).item() < upper, component
    assert mine["share"].sel(component="model") > 0.8
    assert moments["share"].sel(component="model") > 0.8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scale": "latent"}, NotIdentifiedError, "by moments on the probability scale only"),
        ({"scale": "logit"}, ArgumentError, "scale='logit'"),
        ({"configs": "fixed"}, NotIdentifiedError, "of populations"),
        ({"method": "reml"}, ArgumentError, "method='reml'"),
        ({"config_groups": "agent"}, ArgumentError, "'agent' is not a coord"),
    ],
)
def test_what_moments_do_not_answer_is_said(options, error, message):
    with pytest.raises(error, match=message):
        variance_components(counted([[1, 0, 1], [1, 1, 0]], 1), **options)
    with pytest.raises(NotIdentifiedError, match="one config"):
        variance_components(counted([[1, 0, 1]], 1))
