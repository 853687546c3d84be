"""Print the full coverage study beside the published figures: python tests/benchmarks/coverage_study.py [data sets]."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))

from coverage_study import DATA_SETS, PUBLISHED, study


def main(data_sets: int = DATA_SETS) -> None:
    """Print each figure, the published one, and how many standard errors a coverage is away."""
    worst = 0.0
    for setting, rows in PUBLISHED.items():
        print(f"mean {setting[0]}, ICC {setting[1]}, {data_sets} data sets: covers mu, covers realised mean, width")
        for method, published in rows.items():
            found = study(*setting, method, data_sets=data_sets, draws=2000)
            rate = published[0] / 100
            away = (found[0] / 100 - rate) / np.sqrt(rate * (1 - rate) * (1 / data_sets + 1 / DATA_SETS))
            worst = max(worst, abs(away))
            figures = "  ".join(
                f"{mine:5.1f} ({theirs:5.1f})" for mine, theirs in zip(found[:3], published, strict=True)
            )
            print(f"  {method:20} {figures}   {away:+.1f} se")
    print(f"farthest coverage: {worst:.1f} standard errors of the difference")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
