"""Cold clampings, and the memo that they share: each set of variables is solved once per method."""

import itertools
from collections import Counter

import numpy as np
import pytest

import clampz as cz
from clampz import generators
from clampz.clamping.clamping import Clamping
from clampz.numerics import log_sum_exp

# Sums of the same lanes, solved in batches of other sizes, where kernels round differently.
EXACT = 1e-9

MODELS = {
    "K5": lambda: generators.complete(5, weights=(-6, 6), rng=1),
    "grid": lambda: generators.grid(3, 3, weights=(-4, 4), rng=0),
    "attractive": lambda: generators.grid(3, 3, weights=(0, 4), rng=2),
}
METHODS = ("mf", "bethe", "trw")
SELECTORS = ("maxW", "frustCycles+TRE", "pseudo-greedy", "greedy", "optimal")


@pytest.fixture
def solved(monkeypatch):
    """Counts the lanes that each method has solved."""
    counter = Counter()
    run = Clamping._run

    def counted(self, method, batch, options):  # no parents, and no edge weights of theirs
        counter.update((method.name, lane.tobytes()) for lane in batch.unary.T)
        return run(self, method, batch, options)

    monkeypatch.setattr(Clamping, "_run", counted)
    return counter


def raw(method, model, variables):
    """By hand: the sum over the branches, each solved on its own terms."""
    found = getattr(cz, {"mf": "mean_field"}.get(method, method))(cz.branches(model, sorted(variables)))
    return log_sum_exp(found.value if method == "bethe" else found.log_z)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_cold_sums_are_those_of_the_branches_alone(kind, method):
    model = MODELS[kind]()
    result = cz.clamp(model, method, k=3, select="pseudo-greedy", warm_starts=False)
    for step in result.steps:
        assert step.raw_log_z == pytest.approx(raw(method, model, step.variables), abs=EXACT)
        assert step.num_branches == 2 ** len(step.variables)
    expected = result.options.with_changes({"time": result.branches.options.time})
    assert result.branches.options == expected  # not those of branches that also start from their parents


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_memo_changes_nothing(kind, method):
    model = MODELS[kind]()
    memo = cz.Memo(model)
    for select in SELECTORS:
        with_memo, without = (
            cz.clamp(model, method, k=2, select=select, warm_starts=False, memo=given) for given in (memo, None)
        )
        assert with_memo.variables == without.variables
        for mine, other in zip(with_memo.steps, without.steps, strict=True):
            assert (mine.variables, mine.selector, mine.agree) == (other.variables, other.selector, other.agree)
            assert mine.raw_log_z == pytest.approx(other.raw_log_z, abs=EXACT)
            assert mine.lower == pytest.approx(other.lower, abs=EXACT)
        np.testing.assert_allclose(with_memo.marginals.flat, without.marginals.flat, atol=EXACT)


def test_each_set_is_solved_once(solved):
    model = MODELS["grid"]()
    memo = cz.Memo(model)
    for method, select in itertools.product(METHODS, SELECTORS):
        cz.clamp(model, method, k=2, select=select, warm_starts=False, memo=memo)
    assert max(solved.values()) == 1
    lanes = Counter(name for name, _ in solved)
    assert lanes["trw"] == lanes["mean_field"] == 1 + 9 * 2 + 36 * 4  # optimal comes to them all
    assert 1 < lanes["bethe"] < 1 + 9 * 2 + 36 * 4  # on mixed models TRW guides it
    assert len(memo) > 2 * (1 + 9 + 36)


def test_the_sets_of_a_step_are_one_batch(monkeypatch):
    calls = []
    run = Clamping._run
    monkeypatch.setattr(Clamping, "_run", lambda self, *given: calls.append(given[1].num_lanes) or run(self, *given))
    model = MODELS["grid"]()
    cz.clamp(model, "trw", k=2, select="greedy", warm_starts=False)
    assert calls == [1, 9 * 2, 8 * 4]


def test_only_the_last_step(solved):
    model = MODELS["grid"]()
    last = cz.clamp(model, "mf", k=3, select="maxW", warm_starts=False, every_step=False)
    assert len(solved) == 8
    assert [np.isnan(step.log_z) for step in last.steps] == [True, True, True, False]
    assert [step.num_branches for step in last.steps] == [1, 2, 4, 8]
    assert [step.converged for step in last.steps] == [False, False, False, True]
    every = cz.clamp(model, "mf", k=3, select="maxW", warm_starts=False)
    assert last.variables == every.variables
    assert last.steps[-1].raw_log_z == every.steps[-1].raw_log_z
    assert last.steps[0].upper == np.inf
    assert last.lower <= last.log_z


def test_entropies_need_trw_at_every_step(solved):
    model = MODELS["grid"]()
    last = cz.clamp(model, "mf", k=2, select="maxW+TRE", warm_starts=False, every_step=False)
    assert Counter(name for name, _ in solved) == {"trw": 3, "mean_field": 4}
    assert last.variables == cz.clamp(model, "mf", k=2, select="maxW+TRE", warm_starts=False).variables


def test_no_clamp_at_all_is_the_last_step():
    model = MODELS["grid"]()
    result = cz.clamp(model, k=0, warm_starts=False, every_step=False)
    assert len(result.steps) == 1
    assert result.log_z == pytest.approx(cz.trw(model).log_z, abs=EXACT)


def test_warm_starts_report_raw_sums_too():
    model = MODELS["grid"]()
    result = cz.clamp(model, "trw", k=2, select="maxW")
    assert result.steps[-1].raw_log_z == log_sum_exp(result.branches.log_z)


def test_the_heuristics_that_agree():
    model = MODELS["grid"]()
    result = cz.clamp(model, "trw", k=3, select="pseudo-greedy", warm_starts=False)
    assert result.steps[0].agree == ()
    clamped = []
    for step in result.steps[1:]:
        entropy = cz.clamping.selectors.singleton_entropies(cz.trw(cz.branches(model, sorted(clamped))))
        chosen = {
            name: int(np.argmax(cz.scores(model, name, clamped=clamped, entropy=entropy))) for name in cz.selectors()
        }
        assert step.agree == tuple(name for name, variable in chosen.items() if variable == step.variable)
        assert step.selector == step.agree[0]
        clamped.append(step.variable)
    assert cz.clamp(model, "trw", k=1, select="maxW").steps[-1].agree == ()


def test_any_labels_and_branches_of_their_own():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    model = cz.Model.from_arrays(rng.normal(size=(4, 3)), edges, 2 * rng.normal(size=(5, 3, 3)))
    memo = cz.Memo(model)
    result = cz.clamp(model, "trw", k=2, select="greedy", warm_starts=False, memo=memo)
    assert result.steps[-1].raw_log_z == pytest.approx(raw("trw", model, result.variables), abs=EXACT)
    apart = cz.clamp(model, "trw", k=4, select="maxW+TRE", warm_starts=False, per_branch=True)
    assert apart.log_z == pytest.approx(cz.exact(model).log_z, abs=EXACT)


def test_the_options_of_a_memo_are_those_of_its_methods():
    model = MODELS["grid"]()
    memo = cz.Memo(model, cz.options.MeanFieldOptions(num_starts=3), cz.options.TRWOptions(tol=1e-2))
    assert cz.clamp(model, "mf", k=1, warm_starts=False, memo=memo).options.num_starts == 3
    assert cz.clamp(model, "trw", k=1, warm_starts=False, memo=memo).options.tol == 1e-2
    with pytest.raises(cz.errors.OptionError, match=r"tol=0\.01, found 0\.1"):
        cz.clamp(model, "trw", k=1, warm_starts=False, memo=memo, tol=0.1)
    cz.clamp(model, "trw", k=1, warm_starts=False, memo=memo, time=100.0, threads=1)  # these change no number


def test_guides_have_the_options_of_the_memo():
    model = MODELS["grid"]()
    memo = cz.Memo(model, cz.options.TRWOptions(tol=1e-2))
    cz.clamp(model, "mf", k=1, select="maxW+TRE", warm_starts=False, memo=memo)
    assert memo._found["trw", ()].options.tol == 1e-2


def test_what_was_stopped_is_not_kept():
    model = MODELS["grid"]()
    memo = cz.Memo(model)
    cz.clamp(model, "trw", k=1, warm_starts=False, memo=memo, time=0.0, tol=0.0)
    assert len(memo) == 0


def test_refusals():
    model = MODELS["grid"]()
    memo = cz.Memo(model)
    for wrong, match in (
        ({"memo": memo}, "warm_starts"),
        ({"every_step": False}, "warm_starts"),
        ({"memo": memo, "warm_starts": False, "per_branch": True}, "per_branch"),
        ({"memo": cz.Memo(MODELS["K5"]()), "warm_starts": False}, "one of this model"),
    ):
        with pytest.raises(cz.errors.OptionError, match=match):
            cz.clamp(model, "trw", k=1, **wrong)
    with pytest.raises(cz.errors.OptionError, match="options of a memo"):
        cz.Memo(model, cz.options.Options())


def test_an_empty_memo_is_one_too():
    assert cz.Memo(cz.generators.cycle(3, rng=0)) and not len(cz.Memo(cz.generators.cycle(3, rng=0)))


def test_what_was_not_solved_is_not_shown():
    result = cz.clamp(cz.generators.grid(3, 3, rng=0), "trw", k=2, select="maxW", warm_starts=False, every_step=False)
    assert "nan" not in repr(result) and "before" not in repr(result)
    assert not any("hollow" in text.get_text() for text in result.plot().texts)
