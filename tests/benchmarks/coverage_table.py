"""Coverage and width of Bayesian intervals beside the frequentist ones, on the same simulated data.

    python tests/benchmarks/coverage_table.py > tests/benchmarks/coverage_table.csv

One config on 99 tasks x 5 runs: the three populations of the study of arXiv 2606.00920 and one of a lower ICC, each in
three shapes, `DATA_SETS` of each, the model being the beta-binomial. Then boards of 8 configs x 60 tasks x 3 runs with
the crossed beta-binomial model, `BOARDS` of each shape of task effects. Coverage of both targets, in %, and width in
points, with Monte Carlo standard errors by board; ``claims`` names the target that a procedure is meant for. Answers
that the population gate refuses are counted in ``failed``; "bayesian reweighted" is what the refusal offers instead.
Every design has the same seed, so rows of one design are paired and those of two are not independent. It takes some 30
minutes of processor time.
"""

import sys
from collections.abc import Iterator
from functools import partial

import pandas as pd
import xarray as xr

from evalbayes import fit, frequentist, posterior, simulate
from evalbayes.check.coverage import board_seeds, coverage
from evalbayes.check.designs import SHAPES, rates

DATA_SETS, BOARDS, SEED = 300, 80, 0
COMMAND = "python tests/benchmarks/coverage_table.py > tests/benchmarks/coverage_table.csv"
SETTINGS = ((0.634, 0.76), (0.808, 0.59), (0.344, 0.96), (0.8, 0.3))
DENSITIES = {"normal": "normal", "two_humped": "mixture"}
LAPLACE = partial(fit, method="laplace")
BAYESIAN = {
    "bayesian": {"tasks": "sampled"},
    "bayesian reweighted": {"tasks": "sampled", "population": "reweighted"},
    "bayesian fixed": {"tasks": "fixed"},
}
FREQUENTIST = {
    "two_level_bootstrap": {"method": "two_level_bootstrap", "tasks": "sampled"},
    "clustered_normal": {"method": "clustered_normal", "tasks": "sampled"},
    "fixed_normal": {"method": "fixed_normal", "tasks": "fixed"},
}


def asked(side, quantities, options):
    """Return the questions of one side of the package, put in every way there is, by name."""
    return {
        f"{quantity} {name}": partial(getattr(side, quantity), **how)
        for quantity in quantities
        for name, how in options.items()
    }


def together(design, seeds, seed):
    """Return one board with the configs of many as its own; with those of `board_seeds` the same data sets."""
    boards = [design(seed=one).assign_coords(config=[f"set-{i:04}"]) for i, one in enumerate(seeds)]
    return xr.concat(boards, "config", data_vars="minimal", coords="minimal", compat="override", join="exact")


def single(mean, icc, shape, *, data_sets=DATA_SETS, seed=SEED, bayesian=True) -> pd.DataFrame:
    """Return the rows of one population of task rates."""
    design = rates(mean, icc, shape=shape)
    same = partial(together, design, board_seeds(seed, data_sets))
    found = [coverage(asked(frequentist, ["score"], FREQUENTIST), same, boards=1, seed=seed)]
    if bayesian:
        questions = asked(posterior, ["score"], BAYESIAN)
        found.insert(0, coverage(questions, design, fit=LAPLACE, boards=data_sets, seed=seed))
    return rows(found, f"{shape} {mean:g} {icc:g}")


def crossed(shape, *, boards=BOARDS, seed=SEED) -> pd.DataFrame:
    """Return the rows of one shape of task effects, for scores and for differences of all pairs."""
    design = partial(simulate.board, 8, 60, 3, kappa=6.0, task_density=DENSITIES[shape])
    both = ["score", "difference"]
    found = [
        coverage(asked(posterior, both, BAYESIAN), design, fit=LAPLACE, boards=boards, seed=seed),
        coverage(asked(frequentist, both, FREQUENTIST), design, boards=boards, seed=seed),
    ]
    return rows(found, f"crossed {shape}")


def rows(found: list[xr.Dataset], design: str) -> pd.DataFrame:
    """Lay results out one procedure a row, in points."""
    table = []
    for result in found:
        for name in result["procedure"].values:
            one = result.sel(procedure=name)
            claimed = one.sel(target=one["claims"].item())
            table.append(
                {
                    "design": design,
                    "quantity": one["quantity"].item(),
                    "procedure": name.partition(" ")[2],
                    "claims": one["claims"].item(),
                    **{
                        f"{target}{suffix}": round(100 * one[f"coverage{suffix}"].sel(target=target).item(), 2)
                        for target in ("sampled", "fixed")
                        for suffix in ("", "_se")
                    },
                    **{key: round(100 * claimed[key].item(), 2) for key in ("too_low", "too_high")},
                    "width": round(100 * one["width"].item(), 3),
                    "width_se": round(100 * one["width_se"].item(), 3),
                    **{key: one[key].item() for key in ("intervals", "no_interval", "failed", "reason")},
                }
            )
    return pd.DataFrame(table)


def tables() -> Iterator[pd.DataFrame]:
    """Make the whole table, a design at a time."""
    for mean, icc in SETTINGS:
        for shape in SHAPES:
            yield single(mean, icc, shape)
    for shape in DENSITIES:
        yield crossed(shape)


def heading() -> str:
    """Return the first line: the command and the seed that make the table."""
    return f"# {COMMAND}; seed {SEED}, {DATA_SETS} data sets a population, {BOARDS} boards of 8 configs"


def main() -> None:
    """Print the table as it comes."""
    print(heading(), flush=True)
    for i, table in enumerate(tables()):
        table.to_csv(sys.stdout, index=False, header=i == 0)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
