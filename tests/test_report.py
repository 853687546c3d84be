"""The page: right places, escaped names, nothing from outside, and numbers that agree with the JSON beside it."""

import html.parser
import importlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import rankdata

from boards import HOSTILE, board_with
from evalbayes import answer as schema
from evalbayes import compare, posterior
from evalbayes.check import sampler
from evalbayes.errors import OutcomesError
from evalbayes.outcomes import from_counts, observed_score
from evalbayes.report.board import board_of
from evalbayes.report.content import Answers, checks, headline, order, places, reasons, repetition, rows, unresolved
from evalbayes.report.forest import rank_axis, score_axis, step_size
from evalbayes.report.numbers import check_output, columns, dumps, numbers, plain, replacing

page_module = importlib.import_module("evalbayes.report")  # `evalbayes.report` itself is the function


def fabricated(board: xr.Dataset, fixed: bool = False) -> Answers:
    """Answers of the right shape from resampled tasks: the page is tested here, not the posterior."""
    rng = np.random.default_rng(0)
    count = board.sizes["task"]
    rate = (board.successes / board.trials.where(board.trials > 0)).fillna(0).values
    values = rng.multinomial(count, np.full(count, 1 / count), 500) / count @ rate.T
    draws = xr.DataArray(values, dims=("draw", "config"), coords={"config": board.config})
    ranked = draws.copy(data=rankdata(-values, axis=1, method="min").astype(float))
    known = {"tasks": "sampled", "configs": "fixed", "prob": 0.95}
    score = schema.from_draws(draws, quantity="score", method="laplace", **known)
    chances = []
    for k in (1, 3):
        chance = (ranked <= k).mean("draw").astype(float)
        none = xr.full_like(chance, np.nan).expand_dims(ci_bound=["lower", "upper"])
        why = "a probability has no interval"
        chances.append(schema.answer(chance, 0, none, quantity="top_k", method="laplace", reason=why, k=k, **known))
    unknown = schema.unknown(
        {"config": board.config.values},
        "one run",
        quantity="score",
        tasks="fixed",
        configs="fixed",
        method="laplace",
        prob=0.95,
    )
    return Answers(
        observed=observed_score(board),
        score=score,
        bootstrap=schema.from_draws(draws, quantity="score", method="two_level_bootstrap", **known),
        rank=schema.from_draws(ranked, quantity="rank", method="laplace", discrete=True, **known),
        best=chances[0],
        top=chances[1],
        fixed=unknown if fixed else None,
    )


def fitted(**attrs: object) -> xr.DataTree:
    draws = xr.Dataset({"intercept": (("chain", "draw"), np.zeros((1, 2)))})
    tree = xr.DataTree.from_dict({"posterior": draws})
    tree.attrs = {"model": "crossed", "method": "laplace", "why": "its weights pass", "seed": 0, "draws": 500, **attrs}
    return tree


def render(board: xr.Dataset, answers: Answers, **attrs: object) -> str:
    facts = board_of(board, board.attrs)
    fit = fitted(**attrs)
    text = page_module.render(facts, answers, fit, sampler(fit), command="evalbayes report", data="page.json")
    return str(text)


def content(board: xr.Dataset, answers: Answers, **attrs: object) -> dict:
    fit = fitted(**attrs)
    return page_module.content_of(board_of(board, board.attrs), answers, fit, sampler(fit))


def shown(score: xr.Dataset, **attrs: object) -> list:
    fit = fitted(**attrs)
    return checks(sampler(fit), fit.attrs, score)


class Reader(html.parser.HTMLParser):
    """Collects tags, attributes and text, and checks that every tag is closed in order."""

    VOID = ("meta", "link", "br", "line", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.text.append(data)


def parse(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_hostile_names_are_shown_and_neither_break_nor_inject() -> None:
    board = board_with(HOSTILE)
    page = parse(render(board, fabricated(board)))
    shown = "\n".join(page.text)
    assert all(name in shown for name in HOSTILE)
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object")]
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [{}]  # the page's own, with nothing from outside
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]


def test_page_asks_nothing_of_the_network() -> None:
    board = board_with(["a", "b", "c", "d"])
    text = render(board, fabricated(board))
    assert not re.search(r"(?:https?:)?//\w", text)
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_page_is_navigable() -> None:
    board = board_with(["a", "b", "c", "d"])
    page = parse(render(board, fabricated(board)))
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    named = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert named
    assert {*named} <= ids
    assert [tag for tag, _ in page.tags if tag in ("h1", "main", "caption", "header")] == [
        "header",
        "h1",
        "main",
        "caption",
    ]
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    assert ("html", {"lang": "en"}) in page.tags
    figure = next(attrs for tag, attrs in page.tags if tag == "figure")
    assert figure["role"] == "img"
    assert figure["aria-label"]


def test_every_number_in_the_table_names_its_target() -> None:
    board = board_with(["a", "b", "c", "d"])
    text = render(board, fabricated(board, fixed=True))
    head = text[text.index("<thead>") : text.index("</thead>")]
    titles = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', head)
    assert len(titles) == 10
    for title in titles[2:]:
        assert "tasks" in title or "these runs" in title, title


def test_rows_are_ordered_by_score_and_ties_share_a_place() -> None:
    board = board_with(["b", "a", "z"])
    board = xr.concat([board, board.isel(config=[1]).assign_coords(config=["a copy"])], "config")
    table, _, _ = rows(fabricated(board), np.ones(4))
    assert [row.name for row in table] == ["b", "a", "a copy", "z"]
    assert [row.place for row in table] == ["1", "2", "2", "4"]


def test_order_puts_the_unknown_last() -> None:
    board = board_with(["a", "b", "c"])
    answers = fabricated(board)
    answers.score["estimate"][0] = np.nan
    answers.observed[0] = np.nan
    assert order(answers).tolist() == [1, 2, 0]
    assert places(np.array([np.nan, 0.2, 0.2])) == ["–", "1", "1"]


def test_missing_numbers_are_dashes_with_a_reason() -> None:
    board = board_with(["a", "b", "c", "d"])
    answers = fabricated(board, fixed=True)
    assert reasons(answers) == ["score, tasks=fixed, laplace: one run"]
    assert "score, tasks=fixed, laplace: one run" in render(board, answers)
    assert reasons(fabricated(board)) == []


def test_partial_coverage_and_policies_are_said() -> None:
    board = board_with(["a", "b"], tasks=10)
    board.trials[0, :5] = 0
    board.successes[0, :5] = 0
    text = render(board, fabricated(board))
    assert "scored on 50.0% of tasks" in text
    assert "15 of 20 cells" in text
    assert "errors=missing" in text


def test_coverage_is_not_rounded_up_to_all() -> None:
    board = board_with(["a", "b"], tasks=5000)
    board.trials[0, 0] = board.successes[0, 0] = 0
    assert board_of(board, board.attrs).covered == "99.9%"


def test_checks_say_passed_and_failed() -> None:
    score = fabricated(board_with(["a", "b", "c"])).score
    seen = shown(score, k_hat=0.31, weight_ess=120.0, grid_error=1e-7, grid_limit=1e-5)
    found = {check.name: check.verdict for check in seen}
    assert found["Pareto k-hat"] == "passed"
    assert found["Weight ESS"] == "failed"
    assert found["Grid error"] == "passed"
    assert "R-hat, worst" not in found
    gap = shown(score, mean_gap=-0.03, worst_gap=-0.05, gate="failed")[-1]
    assert (gap.value, gap.verdict) == ("−3.00 points on average, −5.00 at worst", "failed")


def test_headline_counts_who_can_be_first() -> None:
    answers = fabricated(board_with(["a", "b", "c", "d"], tasks=400))
    assert headline(answers)[0].startswith("One entry is clearly first")
    tied = fabricated(board_with(["a", "b", "c", "d"], tasks=5))
    can = int((tied.rank.interval.sel(ci_bound="lower") <= 1).sum())
    assert can > 1
    assert headline(tied)[0].startswith(f"{can} of 4 entries can be first")


def test_axes_hold_their_values_and_end_on_ticks() -> None:
    axis = score_axis([0.231, 0.52, np.nan])
    assert (axis.low, axis.high) == (0.2, pytest.approx(0.55))
    assert [tick.label for tick in axis.ticks] == [f"{percent}%" for percent in range(20, 60, 5)]
    assert (axis.at(0.2), axis.at(0.55), axis.at(np.nan)) == (0, 100, None)
    assert score_axis([]).ticks[-1].label == "100%"
    for same in (0.0, 0.5, 1.0):
        narrow = score_axis([same, same])
        assert 0 <= narrow.low < narrow.high <= 1
        assert narrow.low <= same <= narrow.high
    assert [tick.label for tick in rank_axis(2).ticks] == ["1", "2"]
    assert rank_axis(134).ticks[0].label == "1"
    assert step_size(1, 6) == 0.2


def test_size_and_time_of_a_large_page() -> None:
    board = board_with([f"vendor/agent-{i}-with-quite-a-long-name" for i in range(200)], tasks=500)
    answers = fabricated(board)
    start = time.perf_counter()
    text = render(board, answers, k_hat=0.3, weight_ess=700.0)
    data = dumps(content(board, answers))
    taken = time.perf_counter() - start
    print(f"200 configs: {taken:.2f} s, page {len(text) / 1e6:.2f} MB, numbers {len(data) / 1e6:.2f} MB")
    assert taken < 2
    assert len(text) < 1e6


def test_json_is_valid_and_keeps_the_identity() -> None:
    board = board_with(["a", "b", "c"])
    answers = fabricated(board, fixed=True)
    found = json.loads(dumps(content(board, answers, k_hat=0.3)))
    observed, score, *rest = found["answers"]
    assert observed["values"][0]["estimate"] == pytest.approx(float(answers.observed[0]))
    assert {key: score[key] for key in ("quantity", "tasks", "configs", "method", "ci_prob")} == {
        "quantity": "score",
        "tasks": "sampled",
        "configs": "fixed",
        "method": "laplace",
        "ci_prob": 0.95,
    }
    fixed = next(result for result in rest if result["tasks"] == "fixed")
    assert fixed["values"][0] == {
        "config": "a", "estimate": None, "se": None, "lower": None, "upper": None, "reason": "one run"
    }  # fmt: skip
    assert found["board"]["coverage"] == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_plain_values_survive_json() -> None:
    value = {"a": np.float64("nan"), "b": [np.inf, -np.inf], "c": np.array([1, 2]), "d": np.bool_(True), "e": None}
    assert plain(value) == {"a": None, "b": ["inf", "-inf"], "c": [1, 2], "d": True, "e": None}
    assert json.loads(dumps(value)) == plain(value)


def test_an_answer_over_pairs_becomes_one_record_a_pair() -> None:
    pair = xr.DataArray(
        [[0.5, 0.9], [0.1, 0.5]], dims=("config", "opponent"), coords={"config": ["a", "b"], "opponent": ["a", "b"]}
    )
    bounds = xr.concat([pair, pair], "ci_bound")
    known = {"quantity": "win_probability", "tasks": "sampled", "configs": "fixed", "method": "laplace", "prob": 0.9}
    result = schema.answer(pair, 0.0, bounds, tie=pair * 0, **known)
    table = columns(result)
    assert list(table) == ["config", "opponent", "estimate", "se", "lower", "upper", "tie", "reason"]
    assert numbers(result)["values"][1] == {
        "config": "a", "opponent": "b", "estimate": 0.9, "se": 0.0, "lower": 0.9, "upper": 0.9, "tie": 0.0, "reason": ""
    }  # fmt: skip


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("page.html", "old")]


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    source = tmp_path / "runs.json"
    source.write_text("[]")
    with pytest.raises(OutcomesError, match="would replace what is read"):
        check_output([source], [str(source)])
    with pytest.raises(OutcomesError, match="is a folder"):
        check_output([tmp_path])
    with pytest.raises(OutcomesError, match="does not exist"):
        check_output([tmp_path / "none" / "page.html"])
    with pytest.raises(OutcomesError, match="would replace what is read"):
        page_module.report(source, tmp_path / "runs.html")


def test_sibling_never_is_the_page() -> None:
    assert page_module.sibling(Path("report.html")) == Path("report.json")
    assert page_module.sibling(Path("report.json")) == Path("report.json.json")
    assert page_module.sibling(Path("v1.2")) == Path("v1.2.json")


def test_one_config_has_a_page_that_speaks_of_ranks_only_to_refuse_them():
    board = board_with(["only"])
    who = {"quantity": "rank", "tasks": "sampled", "configs": "fixed", "method": "laplace", "prob": 0.95}
    nothing = schema.unknown({"config": ["only"]}, "one config: there is nothing to rank it against", **who)
    reader = parse(render(board, replace(fabricated(board), rank=nothing, best=nothing, top=nothing)))
    spoken = [text.strip() for text in reader.text if re.search(r"\branks?\b|P\(", text, re.IGNORECASE)]
    spoken = [text for text in spoken if "--rank" not in text]
    assert [text.rpartition(": ")[2] for text in set(spoken)] == ["there is nothing to rank it against"]
    two = board_with(["one", "other"])
    assert "Ranked table" in parse(render(two, fabricated(two))).text


def test_the_page_says_what_repetition_buys_and_where_the_two_sides_part(fabricate) -> None:
    trials = np.full((3, 40), 4)
    successes = np.random.default_rng(4).binomial(trials, 0.5)
    successes[0] = np.tile([0, 4], 20)
    fit = fabricate(successes, trials)
    names = {"configs": ["steady", "<b>", "noisy"], "tasks": fit["constant_data"]["task"].values.tolist()}
    board = from_counts(successes, trials, **names)
    for group in ("posterior", "observed_data", "constant_data"):
        fit[group] = fit[group].to_dataset().assign_coords(config=names["configs"])
    both = tuple(compare(quantity, fit, board) for quantity in ("icc", "ceiling"))
    answers = replace(fabricated(board, fixed=True), repetition=both)
    lines = {line[0]: line[1:] for line in repetition(answers)}
    icc, ceiling = both[0].sel(config="steady"), both[1].sel(config="steady")
    low, high = icc.interval.values[0]
    assert lines["steady"][0] == f"{float(icc.estimate[0]):.2f} ({low:.2f}–{high:.2f})"
    assert lines["steady"][1].startswith("1.00")
    assert lines["steady"][3].startswith(f"{float(ceiling.estimate[1]):.2f}")
    assert lines["steady"][4].count("no task had runs of both kinds") == 1
    page = parse(render(board, answers))
    assert lines["steady"][4] in page.text
    assert "<b>" in page.text
    once = parse(render(board_with(["a", "b"]), fabricated(board_with(["a", "b"]))))
    assert "A pilot would show them" in "".join(once.text)


def leading(fabricate, trials: np.ndarray, names: list[str]) -> tuple[xr.Dataset, xr.DataTree]:
    """A board, and a fit of it that no sampler has seen, with these names."""
    successes = np.random.default_rng(8).binomial(trials, np.linspace(0.8, 0.2, len(names))[:, None])
    fit = fabricate(successes, trials, why="made")
    for group in ("posterior", "observed_data", "constant_data"):
        fit[group] = fit[group].to_dataset().assign_coords(config=names)
    tasks = fit["constant_data"]["task"].values.tolist()
    return from_counts(successes, trials, configs=names, tasks=tasks), fit


def page_of(board: xr.Dataset, fit: xr.DataTree) -> tuple[Answers, str, dict]:
    answers, seen = page_module.gather(board, fit, seed=0, prob=0.9), sampler(fit)
    facts = board_of(board, board.attrs)
    text = page_module.render(facts, answers, fit, seen, command="evalbayes report", data="page.json")
    return answers, text, json.loads(dumps(page_module.content_of(facts, answers, fit, seen)))


def test_the_page_says_which_neighbours_are_unresolved_and_who_may_be_best(fabricate) -> None:
    names = ["<b>", "plain", HOSTILE[0], "other"]
    board, fit = leading(fabricate, np.ones((4, 12), int), names)
    answers, text, content = page_of(board, fit)
    pairs, best = posterior.adjacent(fit, prob=0.9), posterior.best_set(fit, prob=0.9)
    shown = "".join(parse(text).text)
    said = f"{pairs.attrs['sentence']}. Best with 90%: {best.attrs['members']}."
    assert unresolved(answers) == content["unresolved"] == said
    assert said in shown
    assert f"{pairs.attrs['unresolved']} of 3 adjacent pairs are unresolved at 90%" in shown
    assert "with a probability of 95%" in shown
    held = {one["quantity"]: one for one in content["answers"]}
    assert [row["config"] for row in held["adjacent"]["values"]] == pairs.config.values.tolist()
    assert [row["in_set"] for row in held["best_set"]["values"]] == best.in_set.values.tolist()
    alone = parse(render(board, fabricated(board)))
    assert "adjacent" not in "".join(alone.text)


@pytest.mark.parametrize("runs", [1, 3])
def test_the_page_compares_no_two_entries_that_nothing_links(fabricate, runs: int) -> None:
    """Two configs without a shared task: no rank, no probability, no neighbours; and why."""
    trials = runs * np.array([[1] * 6 + [0] * 6, [0] * 6 + [1] * 6])
    board, fit = leading(fabricate, trials, ["a", "b"])
    answers, text, content = page_of(board, fit)
    assert (answers.adjacent, answers.best_set, content["unresolved"]) == (None, None, "")
    assert content["headline"][0].startswith("Entries are not ranked: no chain of shared tasks links a ")
    for quantity in ("rank", "top_k"):
        values = [row["estimate"] for one in content["answers"] if one["quantity"] == quantity for row in one["values"]]
        assert values
        assert not any(value is not None for value in values)
    shown = "".join(parse(text).text)
    assert not re.search("Rank interval|P\\(best\\)|adjacent", shown)
    assert ("A pilot would show them" in shown) is (runs == 1)


def test_the_page_withholds_a_pair_that_only_a_third_links(fabricate) -> None:
    trials = np.array([[1] * 6 + [0] * 6, [0] * 6 + [1] * 6, [1] * 12])
    board, fit = leading(fabricate, trials, ["a", "b", "c"])
    level = fit["posterior"]["config"].copy(data=[0.6, 0.55, 0.2])
    draws = fit["posterior"].to_dataset()
    fit["posterior"] = draws.assign(score=0.01 * draws["score"] + level)
    answers, text, _ = page_of(board, fit)
    assert answers.adjacent is not None
    assert answers.adjacent.verdict.values.tolist() == ["withheld", "resolved"]
    assert "not compared: a and b (no shared task)" in text
    assert any(reason.startswith("adjacent, tasks=sampled, laplace: no shared task") for reason in reasons(answers))


def test_a_board_run_once_has_no_repeatability_on_its_page(fabricate) -> None:
    board, fit = leading(fabricate, np.ones((3, 8), int), ["a", "b", "c"])
    answers, text, content = page_of(board, fit)
    assert (answers.fixed, answers.repetition, content["comparisons"]) == (None, (), [])
    shown = "".join(parse(text).text)
    assert "there is no ICC, no ceiling and no best number of runs" in shown
    assert "these tasks, new runs" not in shown
    assert not {one["quantity"] for one in content["answers"]} & {"icc", "ceiling", "within_variance"}
