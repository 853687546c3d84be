"""Write the packaged board ``repeated_runs``: published margins of 32 configs, cells that are simulated.

Published, for 16 models under 2 prompts, on 100 tasks with 5 runs each (99 tasks for GPT-4.1, detailed):

    rate      = mean of p, in %              p_t = k_t / 5, the share of a task's runs that passed
    stable    = share of tasks with p = 1, in %
    variance  = mean of p (1 - p), times 100

With n_k the number of tasks solved k times of 5, each figure is a whole number in disguise:

    sum n_k = N,   sum k n_k = 5 N rate,   n_5 = N stable,   sum k (5 - k) n_k = 25 N variance

1. Histogram. The margins leave between 2 and 64 histograms (n_0, ..., n_5). Taken is the one with the largest
   multinomial likelihood under the beta-binomial of the config's mean and variance; the next one is always behind
   by more than 0.02 in log, so that no rounding decides.
2. Tasks. The counts go to tasks in the order of a simulated ease: ease of the task + effect of model and task,
   shared by the model's two prompts + effect of config and task. So configs order tasks alike but not identically,
   and two prompts of one model more alike than two models: rates correlate 0.81 and 0.55 on average.

Neither step is a measurement; what was measured are the margins. Which run of a task passed is not published and is
not made up: the board holds counts only.

``python scripts/make_repeated_runs.py [file]`` writes the same bytes each time: one row a config, one column a task,
blank where nothing was scored.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import special, stats

RUNS, TASKS = 5, 100
SEED = 5
MODEL_SD, CONFIG_SD = 0.4, 0.3
"""Of the effects of (model, task) and of (config, task), where the ease of tasks has sd 1."""
OUTPUT = Path(__file__).parents[1] / "src" / "evalbayes" / "data" / "repeated_runs.csv"

# arXiv 2606.00920v1, the table of models: (rate, stable, variance) under the detailed prompt, then the minimal one.
PROMPTS = ("detailed", "minimal")
PUBLISHED = {
    "GPT-4.1": ((59.6, 47.5, 4.36), (59.2, 49.0, 4.08)),
    "GPT-4.1-mini": ((58.4, 50.0, 3.28), (59.2, 47.0, 4.48)),
    "o4-mini": ((86.2, 75.0, 3.36), (85.6, 69.0, 5.20)),
    "Claude Sonnet 4.5": ((52.8, 43.0, 3.36), (51.4, 47.0, 1.68)),
    "Claude Haiku 4.5": ((41.2, 35.0, 2.40), (40.8, 34.0, 2.00)),
    "Gemini 3.1 Pro": ((86.2, 75.0, 3.36), (85.8, 74.0, 3.92)),
    "Gemini 3 Flash": ((80.8, 67.0, 5.28), (83.2, 70.0, 4.40)),
    "Gemini 3.1 Flash-Lite": ((69.2, 53.0, 5.28), (63.6, 50.0, 5.44)),
    "Gemini 2.5 Flash": ((53.8, 36.0, 7.04), (48.2, 33.0, 5.84)),
    "Gemini 2.5 Flash+Think": ((71.6, 58.0, 4.64), (74.4, 57.0, 4.72)),
    "QwQ-Plus": ((72.8, 59.0, 4.80), (72.6, 58.0, 4.72)),
    "Qwen-Plus": ((63.4, 52.0, 4.72), (61.2, 51.0, 4.64)),
    "Qwen-Max": ((30.6, 26.0, 2.24), (30.4, 25.0, 2.24)),
    "Qwen-Turbo": ((34.4, 32.0, 0.88), (30.8, 28.0, 1.04)),
    "DeepSeek-R1": ((84.2, 74.0, 3.76), (84.4, 75.0, 3.20)),
    "DeepSeek-V3.2": ((48.4, 36.0, 5.52), (47.6, 38.0, 4.00)),
}
# Its 47.5% stable is no whole number of 100 tasks but 47 of 99; which task was left out is not published.
UNSCORED = {("GPT-4.1", "detailed"): TASKS - 1}

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def main(path: Path) -> None:
    """Write the board to ``path``."""
    names = [f"task-{i:03d}" for i in range(1, TASKS + 1)]
    lines = [["config", "model", "prompt", *names]]
    for (model, prompt), ease in simulated_ease().items():
        scored = np.delete(np.arange(TASKS), UNSCORED.get((model, prompt), []))
        cells = np.full(TASKS, "", dtype=object)
        cells[scored] = counts(ease[scored], histogram(len(scored), PUBLISHED[model][PROMPTS.index(prompt)]))
        lines.append([f"{model} ({prompt})", model, prompt, *map(str, cells)])
    path.write_bytes("".join(",".join(line) + "\n" for line in lines).encode())


def histogram(tasks: int, figures: tuple[float, float, float]) -> Ints:
    """Return (n_0, ..., n_5): the likeliest of the histograms that print as ``figures``."""
    rate, stable, variance = figures
    passes = whole(rate, 1, 100 / (RUNS * tasks))
    always = whole(stable, 1, 100 / tasks)
    spread = whole(variance, 2, 100 / (RUNS**2 * tasks))
    return likeliest(possible(tasks, passes, always, spread), passes, spread)


def whole(figure: float, digits: int, unit: float) -> int:
    """Return the one whole number of units that prints as ``figure``."""
    guess = round(figure / unit)
    fits = [n for n in (guess - 1, guess, guess + 1) if round(n * unit, digits) == figure]
    if len(fits) != 1:
        raise ValueError(f"{figure} is the print of {len(fits)} multiples of {unit}; expected one")
    return fits[0]


def possible(tasks: int, passes: int, always: int, spread: int) -> Ints:
    """Return every histogram, (histogram, 6), of ``tasks`` with these passes, n_5 and sum of k (5 - k)."""
    found = []
    for n1 in range(spread // 4 + 1):
        for n4 in range(spread // 4 + 1 - n1):
            # k (5 - k) is 4 at 1 and 4, and 6 at 2 and 3; the passes then tell 2 from 3.
            middle, rest = divmod(spread - 4 * (n1 + n4), 6)
            n3 = passes - 5 * always - 4 * n4 - n1 - 2 * middle
            row = (tasks - always - n1 - n4 - middle, n1, middle - n3, n3, n4, always)
            if rest == 0 and min(row) >= 0:
                found.append(row)
    return np.array(found, dtype=np.int64)


def likeliest(histograms: Ints, passes: int, spread: int) -> Ints:
    """Return the row with the largest multinomial likelihood under the beta-binomial of its mean and variance.

    The mean m is passes / (R N). The variance over tasks of k / R is m (1 - m) less the mean of p (1 - p), which for
    a beta-binomial with intraclass correlation rho is m (1 - m) (1 - rho) (R - 1) / R.
    """
    tasks = int(histograms[0].sum())
    mean = passes / (RUNS * tasks)
    rho = 1 - spread / (RUNS * (RUNS - 1) * tasks) / (mean * (1 - mean))
    size = (1 - rho) / rho
    log_share = stats.betabinom.logpmf(np.arange(RUNS + 1), RUNS, mean * size, (1 - mean) * size)
    likelihood = histograms @ log_share - special.gammaln(histograms + 1).sum(axis=1)
    return np.asarray(histograms[likelihood.argmax()])


def simulated_ease() -> dict[tuple[str, str], Floats]:
    """Return how easy each task is for each (model, prompt), (task); only the order matters."""
    rng = np.random.default_rng(SEED)
    task = rng.standard_normal(TASKS)
    ease = {}
    for model in PUBLISHED:
        of_model = task + MODEL_SD * rng.standard_normal(TASKS)
        for prompt in PROMPTS:
            ease[model, prompt] = of_model + CONFIG_SD * rng.standard_normal(TASKS)
    return ease


def counts(ease: Floats, histogram: Ints) -> Ints:
    """Return the number of passes of each task, (task): the easiest n_5 get 5, the next n_4 get 4, and so on."""
    result = np.empty(len(ease), dtype=np.int64)
    result[np.argsort(ease)] = np.repeat(np.arange(RUNS + 1), histogram)
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT)
