"""A little of `benchmarks/soundness.py`: bounds against arithmetic without rounding, on models of every kind."""

from collections import Counter
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

import clampz as cz
import soundness
from soundness_models import KINDS, Drawn
from soundness_questions import QUESTIONS
from soundness_truth import Truth, exponential, fixed

# Models of a kind that are asked as the harness does, and of all kinds in turn for each question alone.
MODELS_OF_A_KIND, MODELS_FOR_A_QUESTION = 5, 17


@pytest.mark.parametrize("kind", KINDS)
def test_every_bound_holds(kind):
    for number in range(MODELS_OF_A_KIND):
        seed = [12, number]
        assert soundness.first_finding(KINDS[kind](np.random.default_rng(seed)), seed) is None


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered_truly(question):
    counts = Counter()
    for number, kind in zip(range(MODELS_FOR_A_QUESTION), list(KINDS) * MODELS_FOR_A_QUESTION, strict=False):
        seed = [34, number]
        drawn = KINDS[kind](np.random.default_rng(seed))
        assert soundness.first_finding(drawn, seed, [question], counts) is None
    assert counts.total() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_that_of_enumeration(kind):
    drawn = KINDS[kind](np.random.default_rng(3))
    if np.prod([float(k) for k in drawn.num_states]) > 1e5 or kind in ("huge", "cancelling", "every_size"):
        return
    scores = np.zeros(drawn.num_states, dtype=np.longdouble)
    for scope, table in drawn.factors:
        shape = [k if i in scope else 1 for i, k in enumerate(drawn.num_states)]
        scores = scores + np.transpose(table, np.argsort(scope)).reshape(shape).astype(np.longdouble)
    top, truth = scores.max(), Truth(drawn)
    if top == -np.inf:
        assert truth.log_z() is None
        return
    weights = np.exp(scores - top)
    log_z = drawn.constant + top + np.log(weights.sum())
    assert float(truth.log_z()) == pytest.approx(float(log_z), rel=1e-12, abs=1e-12)
    for i in range(len(drawn.num_states)):
        others = tuple(j for j in range(len(drawn.num_states)) if j != i)
        marginal = (weights.sum(axis=others) / weights.sum()).astype(float)
        assert [float(p) for p in truth.marginal(i)] == pytest.approx(marginal, rel=1e-12, abs=1e-15)
        given = [truth.log_z((i, a)) for a in range(drawn.num_states[i])]
        assert [0.0 if g is None else float((g - truth.log_z()).exp()) for g in given] == pytest.approx(marginal)


def test_counting_variables_that_are_alike_is_summing_over_them():
    seen = 0
    for number in range(40):
        drawn = KINDS["alike"](np.random.default_rng(number))
        if len(drawn.num_states) > 9:
            continue
        seen += 1
        counted, summed = Truth(drawn), Truth(drawn._replace(alike=()))
        last = len(drawn.num_states) - 1
        off = Decimal("1e-45") * (1 + abs(summed.log_z()))
        for evidence in ((), ((0, 1),), ((0, 1), (last, 0)))[: 2 + (last > 0)]:
            assert abs(counted.log_z(*evidence) - summed.log_z(*evidence)) < off
        assert [*map(float, counted.marginal(0))] == pytest.approx([*map(float, summed.marginal(0))], rel=1e-14)
    assert seen > 5


def test_the_truth_of_large_potentials_is_that_of_sums_without_rounding():
    """1e19 and 1e-3 in one sum: floats lose the second, decimals would lose e^-1e19."""
    factors = [((0,), [1e19, 1e19]), ((0, 1), [[-1e19, 0.25], [-1e19, -np.inf]]), ((1,), [1e-3, -1e19])]
    drawn = Drawn((2, 2), tuple((scope, np.array(table)) for scope, table in factors))
    with localcontext(Context(prec=60)):
        want = sum(Decimal(x).exp() for x in (1e-3, 0.25, 1e-3)).ln()
        assert abs(Truth(drawn).log_z() - want) < Decimal("1e-50")
        assert abs(Truth(drawn).log_z((1, 1)) - Decimal("0.25")) < Decimal("1e-50")
    assert Truth(drawn).log_z((0, 1), (1, 1)) is None


def test_exponentials_have_sixty_digits():
    context = Context(prec=80, Emin=-(10**18) + 1, Emax=10**18 - 1)
    rng = np.random.default_rng(0)
    for x in [-1e-300, -0.5, -1.0, -700.0, *(-(10.0 ** rng.uniform(-20, 16, size=50))).tolist()]:
        want = context.exp(Decimal(x))
        assert abs(context.divide(exponential(fixed(x)), want) - 1) < Decimal("1e-58")


def test_a_false_bound_is_found_and_made_small(monkeypatch):
    """The harness can fail: a method that lies is caught, and the model that shows it shrinks."""
    drawn = KINDS["pairwise"](np.random.default_rng(1))
    honest = cz.trw

    def lying(model, **options):
        found = honest(model, **options)
        return found if not model.num_edges else type(found)(**{**vars(found), "upper": found.upper - 1e9})

    monkeypatch.setattr(cz, "trw", lying)
    finding = soundness.first_finding(drawn, [1], ["starts"])
    assert finding is not None and finding.kind.startswith("trw from")
    small = soundness.shrunk(drawn, [1], finding, seconds=60.0)
    assert len(small.factors) == 1 and len(small.num_states) == 2
    assert "cz.Model.from_factors" in small.program()


def test_a_run_counts_by_kind_and_question_and_says_when_something_is_wrong(monkeypatch, capsys):
    tally = soundness.Tally()
    soundness.run(tally, 5, ["binary", "tiny"], models=8, questions=["one_method"])
    assert tally.models == {"binary": 4, "tiny": 4} and tally.intervals.total() >= 4 and not tally.findings
    monkeypatch.setattr(soundness, "holds", lambda claim, truth: False)
    monkeypatch.setattr("sys.argv", ["soundness.py", "--seed", "5:7", "--models", "2", "--kind", "binary"])
    assert soundness.main() == 1
    assert "--again binary:1:6" in (printed := capsys.readouterr().out) and "4 models" in printed


def test_an_interrupted_run_prints_its_counts(monkeypatch, capsys):
    def interrupted(drawn, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(soundness, "first_finding", interrupted)
    monkeypatch.setattr("sys.argv", ["soundness.py", "--models", "2"])
    assert soundness.main() == 0
    assert "0 models, 0 intervals, 0 findings" in capsys.readouterr().out
