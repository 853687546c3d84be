"""The leaderboards of the SWE-bench site, rebuilt from SWE-bench/swe-bench.github.io.

data/leaderboards.json (0c77a6cb; bdcd3ddd has the costs) gives the fields of an entry, data/info_for_leaderboard.json
(81430ddc) those of per_instance_details, which data/combine_per_instance_details.py (193160a4) writes into entries;
data/leaderboard_statistics.py (6f74bfa7) adds n_instances and resolved_se, and takes the list of boards alone as well.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import swe_bench_site
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

TASKS = ["astropy__astropy-1", "astropy__astropy-22", "pylint-dev__pylint-3", "pylint-dev__pylint-44"]


def detail(resolved, cost=0.25, calls=10):
    return {"resolved": resolved, "cost": cost, "api_calls": calls}


def entry(name="model-a", resolved=75.0, outcomes=(True, True, True, False), **more):
    """An entry as the site has it; without outcomes it has no per_instance_details."""
    details = {"per_instance_details": dict(zip(TASKS, map(detail, outcomes), strict=False))} if outcomes else {}
    return (
        {
            "name": name,
            "logo": ["https://example.org/logo.png"],
            "site": None,
            "folder": f"20260101_{name}",
            "resolved": resolved,
            "date": "2026-01-01",
            "logs": None,
            "cost": 1.0,
            "instance_cost": 0.25,
            "instance_calls": 10.0,
            "os_model": False,
            "checked": True,
            "tags": ["Model: m-1", "Model: m-2", "Org: Org: one", "System: Attempts - 2+", "Other"],
            "warning": None,
        }
        | details
        | more
    )


def site(*entries, name="Verified", others=()):
    return {"leaderboards": [{"name": name, "results": list(entries)}, *({"name": n, "results": []} for n in others)]}


def read(content, **options):
    return swe_bench_site.attempts(json.loads(json.dumps(content)), Path("leaderboards.json"), Options(**options))


def board(made):
    return from_rows(made.rows, made.columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def test_entries_with_results_by_instance_become_configs_with_their_facts():
    made = read(site(entry(), entry("model-b", 50.0, (False, True, True, False), tags=["Org: o"])))
    counted = board(made)
    assert counted.successes.sel(task=TASKS).values.tolist() == [[1, 1, 1, 0], [0, 1, 1, 0]]
    facts = counted.sel(config="model-a")
    named = {name: facts[name].item() for name in ("model", "org", "attempts", "date", "folder", "entry_cost")}
    assert named == {
        "model": "m-1, m-2",
        "org": "Org: one",
        "attempts": "2+",
        "date": "2026-01-01",
        "folder": "20260101_model-a",
        "entry_cost": 1.0,
    }
    assert counted.repository.sel(task=TASKS).values.tolist() == ["astropy/astropy"] * 2 + ["pylint-dev/pylint"] * 2
    assert made.rows["cost"].tolist() == [0.25] * 8
    assert made.rows["api_calls"].tolist() == [10] * 8
    assert made.where(5) == "leaderboard Verified, entry 2 (model-b), astropy__astropy-22"


@pytest.mark.parametrize(
    ("percent", "text"), [("41.98", "0.4198"), ("65.0", "0.650"), ("7", "0.07"), ("100.0", "1.000")]
)
def test_the_published_rate_is_a_proportion_with_the_decimals_it_was_printed_with(percent, text):
    made = read(site(entry(resolved=json.loads(percent))))
    assert set(made.rows["published"]) == {text}
    assert board(made).published.values.tolist() == [float(text)]


def test_a_published_rate_that_its_rows_do_not_give_is_found():
    honest = board(read(site(entry())))
    assert audit(honest).errors == 0
    claimed = board(read(site(entry(resolved=100.0, outcomes=(True, False, False, False)))))
    assert audit(claimed).kind.values.tolist()[0] == "published_rate"


def test_entries_without_results_by_instance_are_skipped_with_their_rate():
    made = read(site(entry(), entry("silent", 41.98, ()), entry("bare", None, (), per_instance_details=None)))
    assert made.skipped == [
        ("silent", "no results by instance, published rate 0.4198"),
        ("bare", "no results by instance, published rate none"),
    ]
    assert made.rows["config"].unique().tolist() == ["model-a"]
    with pytest.raises(NoAttempts, match="no attempt"):
        read(site(entry("silent", 41.98, ())))


def test_of_several_leaderboards_one_is_chosen():
    content = site(entry(), others=("Lite", "Test"))
    with pytest.raises(OutcomesError, match=r"leaderboards Verified, Lite, Test: say which counts with part="):
        read(content)
    assert len(read(content, part="Verified").rows) == 4
    with pytest.raises(OutcomesError, match="no part 'Full' among its leaderboards"):
        read(content, part="Full")
    with pytest.raises(OutcomesError, match="2 leaderboards are called 'Verified'"):
        read(site(entry(), others=("Verified",)))


def test_boards_without_the_object_around_them():
    boards = site(entry())["leaderboards"]
    assert swe_bench_site.recognises(boards, Path("x.json"))
    assert len(read(boards).rows) == 4


def test_an_entry_on_a_subset_an_instance_without_a_result_and_the_figures_of_the_page():
    details = {TASKS[0]: detail(True), TASKS[1]: detail(None), TASKS[2]: {"resolved": False}}
    more = {"per_instance_details": details, "n_instances": 2, "resolved_se": 35.36}
    made = read(site(entry(resolved=50.0, outcomes=(), **more), entry("model-b")))
    counted = board(made)
    assert counted.trials.sel(task=TASKS).values.tolist() == [[1, 0, 1, 0], [1, 1, 1, 1]]
    assert counted.errors.sel(task=TASKS).values.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert made.header == {"model-a": {"trials": 2, "se": "0.3536"}}
    assert np.isclose((0.5 * 0.5 / 2) ** 0.5, 0.3536, atol=5e-5)
    assert not {"header_count", "standard_error"} & set(audit(counted, header=made.header).kind.values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (site({"resolved": 1.0}), r"leaderboard Verified, entry 1: there is no 'name'"),
        (site(entry(resolved="75")), r"entry 1 \(model-a\): 'resolved' is a str, not int or float"),
        (site(entry(per_instance_details={"t": {"cost": 1}})), r"\(model-a\), t: there is no 'resolved'"),
        (site(entry(per_instance_details={"t": {"resolved": 1}})), r"\(model-a\), t: 'resolved' is a int, not bool"),
        (site(entry(per_instance_details={"t": True})), r"\(model-a\), t: a bool where an object"),
        (site(entry(per_instance_details=["t"])), r"'per_instance_details' is a list, not dict"),
        (site("model-a"), r"leaderboard Verified, entry 1: a str where an object"),
        ({"leaderboards": [{"name": "Verified"}]}, r"leaderboard Verified: there is no 'results'"),
        ({"leaderboards": [{"results": []}]}, r"leaderboard 1: there is no 'name'"),
        ({"leaderboards": []}, r"there are no leaderboards"),
        ({}, r"there is no 'leaderboards'"),
        (None, r"neither leaderboards nor a list"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(content, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(content)
    assert str(caught.value).startswith("leaderboards.json")
    assert "\n" not in str(caught.value)


def test_what_is_recognised():
    path = Path("leaderboards.json")
    assert swe_bench_site.recognises(site(entry()), path)
    for other in (None, 3, [], {}, [{"name": "a"}], {"leaderboards": {}}, {"leaderboards": [1]}, [{"task": "t"}]):
        assert not swe_bench_site.recognises(other, path)


def test_unknown_fields_and_odd_names():
    made = read(site(entry("Modèle (2026-01-01) / x", novel={"a": [1]}, tags="none", date=20260101), name="Äll"))
    assert board(made).config.values.tolist() == ["Modèle (2026-01-01) / x"]
    assert "model" not in made.rows
