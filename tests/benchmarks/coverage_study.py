"""Print the full coverage study beside the published figures: python tests/benchmarks/coverage_study.py [data sets]."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))

from coverage_study import DATA_SETS, PUBLISHED, figures, study


def main(data_sets: int = DATA_SETS) -> None:
    """Print each figure, the published one, and how many standard errors a coverage is away."""
    worst = 0.0
    for setting, rows in PUBLISHED.items():
        print(f"mean {setting[0]}, ICC {setting[1]}, {data_sets} data sets: covers mu, covers realised mean, width")
        found = study(*setting, data_sets=data_sets)
        for method, published in rows.items():
            mine = figures(found.sel(procedure=method))
            away = [standard_errors(*pair, data_sets) for pair in zip(mine[:2], published[:2], strict=True)]
            worst = max(worst, *map(abs, away))
            said = "  ".join(f"{one:5.1f} ({theirs:5.1f})" for one, theirs in zip(mine, published, strict=True))
            print(f"  {method:20} {said}   {away[0]:+.1f}, {away[1]:+.1f} se")
    print(f"farthest coverage: {worst:.1f} standard errors of the difference")


def standard_errors(share: float, published: float, data_sets: int) -> float:
    """Return how many standard errors two simulated coverages in % are apart; the published has one miss at least."""
    miss = max(1 - published / 100, 1 / DATA_SETS)
    return (share - published) / (100 * np.sqrt(miss * (1 - miss) * (1 / data_sets + 1 / DATA_SETS)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
