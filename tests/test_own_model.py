"""A model of one's own: the worked example of models/README.md as it stands there, and what is said of no model."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
import xarray as xr
from scipy import stats

import evalbayes as eb
from evalbayes.choice import built
from evalbayes.density import compile_density, data_of
from evalbayes.errors import ArgumentError
from evalbayes.models import crossed as crossed_module
from evalbayes.models import crossed_beta_binomial, crossed_discrimination, effects

README = (Path(__file__).parents[1] / "models" / "README.md").read_text()


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    return eb.simulate.board(configs=6, tasks=24, runs=1, seed=3)


@pytest.fixture(scope="module")
def mine(tmp_path_factory) -> Path:
    """The page's example: its code put in the place of what it says to replace."""
    before, after = (
        re.search(rf"<!-- {side} -->\n```python\n(.*?)```", README, re.S)[1] for side in ("before", "after")
    )
    source = Path(crossed_module.__file__).read_text()
    assert source.count(before) == 1
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(source.replace(before, after).replace("def crossed(", "def mine("))
    return path


def test_the_worked_example_has_the_prior_that_it_says(board, mine):
    """log p of the effects is that of a t with 4 degrees of freedom, by scipy; all else as in crossed."""
    from evalbayes.choice import chosen

    _, function, why = chosen(board, f"{mine}:mine")
    assert why == "asked for"
    density = compile_density(built(function, board, {}, marginal=True))
    plain = compile_density(built(crossed_module.crossed, board, {}, marginal=True))
    data, raw = data_of(density.model), np.linspace(-1.5, 2.5, 6)
    x, rest = np.zeros(density.size), np.zeros(plain.size)
    x[density.slices["config_effect_raw"]] = raw
    found = float(density.log_prior(x, data)) - float(plain.log_prior(rest, data_of(plain.model)))
    # At config_sd = 1 the zero-sum effects at 0 have five standard normals' density.
    assert found == pytest.approx(stats.t(4).logpdf(raw).sum() - 5 * stats.norm.logpdf(0.0), abs=1e-10)
    effect = density.quantities(["config_effect"])(x, data)["config_effect"]
    np.testing.assert_allclose(effect, raw - raw.mean(), atol=1e-12)


def test_the_worked_example_fits_and_answers(board, mine):
    fit = eb.fit(board, f"{mine}:mine", draws=300)
    assert fit.attrs["model"].endswith("mine.py:mine")
    assert eb.posterior.rank(fit)["estimate"].notnull().all()
    assert eb.posterior.score(fit, tasks="fixed", assume="no_interaction")["estimate"].notnull().all()
    assert float(eb.posterior.top_k(fit, k=2)["estimate"].sum()) == pytest.approx(2.0)


def test_every_name_on_the_page_is_one_of_a_packaged_models(board):
    """The table of names is the models' own: none is promised that no model has, and none of theirs is left out."""
    grouped = board.assign_coords(agent=("config", list("xxyyzz")), suite=("task", list("ab" * 12)))
    again = grouped.assign({name: 3 * grouped[name] for name in ("successes", "trials")})
    options = {"config_groups": "agent", "task_groups": "suite", "interaction_group": "agent"}
    names: set[str] = set()
    for model in (
        crossed_beta_binomial.crossed_beta_binomial(again, **options),
        crossed_discrimination.crossed_discrimination(again, **options),
    ):
        names |= set(model.named_vars) | {f"{variable.name}" for variable in model.unobserved_RVs}
    table = README[README.index("| variable |") : README.index("Two forms")]
    page = set(re.findall(r"`([a-zA-Z_]+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert page - names == {"GROUP_effect", "GROUP_sd"}
    reported = {name for name in names if re.search("_effect$|_sd$|^log_|^task_|^score|^ability", name)}
    own = {"agent_effect", "agent_sd", "suite_effect", "suite_sd", "log_scale_ratio"}
    assert reported - page == own


def no_score(outcomes, *, marginal=False):
    with pm.Model(coords=effects.board_coords(outcomes)) as model:
        k, n = effects.counts(outcomes)
        b = pmd.Normal("intercept", 0.0, 1.0)
        pmd.Binomial("successes_observed", n, logit_p=b + 0.0 * n, observed=k)
    return model


def score_of_tasks(outcomes, *, marginal=False):
    model = no_score(outcomes)
    with model:
        pmd.Deterministic("score", pmd.math.sigmoid(model["intercept"]) + 0.0 * model["trials"].sum("config"))
    return model


def no_logit(outcomes, *, marginal=False):
    with pm.Model() as model:
        pmd.Normal("something", 0.0, 1.0)
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (no_score, r"no_score has no score \(config\)"),
        (score_of_tasks, r"score has dims \('task',\), not \('config',\)"),
        (no_logit, "no_logit has neither intercept nor ability"),
        (lambda outcomes, *, marginal=False: None, "returned a NoneType: a model function returns a pymc.Model"),
        (lambda outcomes: None, "takes no marginal="),
    ],
)
def test_what_is_no_model_is_said_before_it_is_sampled(board, model, message):
    with pytest.raises(ArgumentError, match=message):
        eb.fit(board, model)


@pytest.mark.parametrize(
    ("code", "message"), [("def mine(:", "invalid syntax"), ("import nowhere_to_be_found", "nowhere")]
)
def test_a_file_that_cannot_be_imported_is_named(board, tmp_path, code, message):
    path = tmp_path / "broken.py"
    path.write_text(code)
    with pytest.raises(ArgumentError, match=rf"broken.py cannot be imported: .*{message}"):
        eb.fit(board, f"{path}:mine")
