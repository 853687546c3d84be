"""How many fits it takes to find a prior that is not the truths'.

    python tests/benchmarks/calibration/power.py

Truths have config_sd of scale 0.5, fits 1.5. Of `ROWS` rows every number of fits is chosen at random `CHOICES` times.
"""

import numpy as np
import pandas as pd

from evalbayes.check.calibration import summary
from evalbayes.check.ranks import design, grid, ranked

ROWS, CHOICES, FITS = 120, 60, (15, 20, 25, 30, 40)


def main() -> None:
    """Print the share of choices in which the model is called not calibrated."""
    plan = design("beta_binomial", grid(4, 5, 2), true_priors={"config_sd": 0.5}, config_sd=1.5)
    table, rng = pd.DataFrame(list(ranked(plan, range(ROWS)))), np.random.default_rng(0)
    print("fits,found")
    for fits in FITS:
        chosen = (table.iloc[rng.choice(ROWS, fits, replace=False)] for _ in range(CHOICES))
        found = [summary(some, draws=plan.draws).attrs["verdict"] == "failed" for some in chosen]
        print(f"{fits},{np.mean(found):.2f}")


if __name__ == "__main__":
    main()
