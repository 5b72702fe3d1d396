"""The paper's runs: sums, sequences and agreement against slow twins, reproducibility, and each experiment's rows."""

import pickle
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import clampz as cz
from clampz.clamping.selectors import choose, scores, singleton_entropies
from clampz.errors import OptionError
from clampz.numerics import log_sum_exp
from reproduction.families import family_named
from reproduction.runs.experiments import Finished, Row, Task, perform
from reproduction.settings import BY_LIMIT, HEURISTICS, MINI_BUCKETS, PAPER, SETTINGS, TIMED, settings_named

ROUNDING = 1e-7  # batches of few lanes round differently, and iterations that stop by a tolerance make more of it
MIXED, ATTRACTIVE = "complete10[-6,6]", "complete10[0,6]"
LABELS = {"mean_field": "mf", "bethe": "bethe", "trw": "trw"}
FOUND: dict[Task, Finished] = {}
SEEDS: dict[int, int] = {}


def found(family: str, experiment: str = "errors", settings: str = "paper", run: int = 0) -> Finished:
    task = Task(settings, experiment, family, run)
    if task not in FOUND:
        FOUND[task] = perform(task)
    return FOUND[task]


@cache
def drawn(family: str) -> cz.Model:
    model = family_named(family).model(0)
    SEEDS[id(model)] = family_named(family).seed(0)
    return model


def rows_of(finished: Finished, method: str, selector: str) -> list[Row]:
    return [row for row in finished.rows if row.method == method and row.selector == selector]


def variables(finished: Finished, method: str, selector: str) -> list[int]:
    return [row.variable for row in rows_of(finished, method, selector)]


def slow_sum(model: cz.Model, method: str, clamped: tuple[int, ...]) -> float:
    settings = PAPER.for_model(SEEDS[id(model)], 5)
    estimates = getattr(cz, method)(cz.branches(model, clamped), options=settings.options(LABELS[method]))
    return log_sum_exp(estimates.value if method == "bethe" else estimates.log_z)


def slow_choice(model: cz.Model, name: str, clamped: tuple[int, ...]) -> int:
    entropy = (
        singleton_entropies(cz.trw(cz.branches(model, clamped), options=PAPER.options("trw")))
        if name.endswith("+TRE")
        else None
    )
    return choose(
        model, scores(model, name, clamped=clamped, entropy=entropy), clamped=clamped, entropy=entropy
    ).variable


def test_a_set_is_solved_once(monkeypatch):
    memos = []

    class Counted(cz.Memo):
        def __init__(self, *args):
            super().__init__(*args)
            self.solved = Counter()
            memos.append(self)

        def estimates(self, method, sets, piece, solve):
            def counted(lanes):
                self.solved.update((method, sets[p]) for p in np.unique(piece[lanes]))
                return solve(lanes)

            return super().estimates(method, sets, piece, counted)

    monkeypatch.setattr(cz, "Memo", Counted)
    perform(Task("paper", "errors", MIXED, 0))
    (memo,) = memos
    assert len(memo) == len(memo.solved) > 50 and max(memo.solved.values()) == 1


@pytest.mark.parametrize("family", [MIXED, ATTRACTIVE])
def test_bounds_hold_and_log_z_is_exact(family):
    finished = found(family)
    model = drawn(family)
    states = (np.arange(1 << 10)[:, None] >> np.arange(10)) & 1
    i, j = model.edges.T
    score = model.constant + sum(model.unary[v][states[:, v]] for v in range(10))
    score = score + sum(
        model.pairwise[a, b][states[:, a], states[:, b]] for a, b in zip(i.tolist(), j.tolist(), strict=True)
    )
    assert finished.exact == pytest.approx(np.logaddexp.reduce(score), abs=1e-10)
    assert all(row.log_z <= finished.exact for row in finished.rows if row.method == "mf")
    assert all(row.log_z >= finished.exact for row in finished.rows if row.method == "trw")
    assert all(row.num_branches == 2**row.clamps for row in finished.rows)


@pytest.mark.parametrize("family", [MIXED, ATTRACTIVE])
def test_rows_of_errors(family):
    finished = found(family)
    counts = Counter((row.method, row.selector) for row in finished.rows)
    for method in ("mf", "bethe", "trw"):
        assert (
            counts.pop((method, "none")) == 1
            and counts.pop((method, "greedy")) == 3
            and counts.pop((method, "pseudo-greedy")) == 5
        )
        assert all(counts.pop((method, name)) == 5 for name in HEURISTICS)
    extra = {("bethe", "pseudo-greedy (mf)"): 5, ("bethe", "pseudo-greedy (gap)"): 5} if family == MIXED else {}
    assert counts == extra
    assert all(row.seconds is None for row in finished.rows)
    assert all((row.variable is None) == (row.clamps == 0) for row in finished.rows)
    assert all(bool(row.agree) == (row.selector == "pseudo-greedy") for row in finished.rows)


@pytest.mark.parametrize("family", ["er25[-6,6]", "grid25[0,6]"])
def test_heuristics_clamp_what_clamp_does(family):
    """Plain ones in all their steps; with +TRE the first, before which `clamp` has the same edge weights."""
    finished, model = found(family), drawn(family)
    for name in HEURISTICS:
        assert variables(finished, "mf", name) == variables(finished, "bethe", name) == variables(finished, "trw", name)
        k = 1 if name.endswith("+TRE") else 5
        clamped = cz.clamp(model, "trw", k=k, select=name, options=PAPER.trw)
        assert list(clamped.variables) == variables(finished, "trw", name)[:k]
        assert clamped.steps[0].log_z == pytest.approx(rows_of(finished, "trw", "none")[0].log_z, abs=ROUNDING)


@pytest.mark.parametrize("family", [MIXED, "er25[0,6]"])
def test_heuristics_follow_the_entropies_of_their_own_branches(family):
    finished, model = found(family), drawn(family)
    for name in HEURISTICS:
        chosen: tuple[int, ...] = ()
        for row in rows_of(finished, "trw", name):
            assert row.variable == slow_choice(model, name, chosen)
            chosen = tuple(sorted((*chosen, row.variable)))
            assert row.log_z == pytest.approx(slow_sum(model, "trw", chosen), abs=ROUNDING)


@pytest.mark.parametrize("family", [MIXED, ATTRACTIVE])
@pytest.mark.parametrize(
    ("label", "method", "sign"), [("mf", "mean_field", 1), ("bethe", "bethe", 1), ("trw", "trw", -1)]
)
def test_greedy_and_pseudo_greedy_take_the_best(family, label, method, sign):
    finished, model = found(family), drawn(family)
    guide, sign = ("trw", -1) if label == "bethe" and family == MIXED else (method, sign)
    for selector in ("greedy", "pseudo-greedy"):
        chosen: tuple[int, ...] = ()
        for row in rows_of(finished, label, selector)[:3]:
            names = (
                {name: slow_choice(model, name, chosen) for name in HEURISTICS} if selector == "pseudo-greedy" else {}
            )
            tried = set(names.values()) if names else set(range(model.num_variables)) - set(chosen)
            merit = {variable: sign * slow_sum(model, guide, tuple(sorted((*chosen, variable)))) for variable in tried}
            assert merit[row.variable] == pytest.approx(max(merit.values()), abs=ROUNDING)
            assert row.agree == ",".join(name for name in HEURISTICS if names and names[name] == row.variable)
            chosen = tuple(sorted((*chosen, row.variable)))
            assert row.log_z == pytest.approx(slow_sum(model, method, chosen), abs=ROUNDING)


def test_bethe_on_mixed_models_is_guided_by_the_bounds():
    finished = found(MIXED)
    assert variables(finished, "bethe", "pseudo-greedy") == variables(finished, "trw", "pseudo-greedy")
    assert variables(finished, "bethe", "greedy") == variables(finished, "trw", "greedy")
    assert variables(finished, "bethe", "pseudo-greedy (mf)") == variables(finished, "mf", "pseudo-greedy")
    model, first = drawn(MIXED), rows_of(finished, "bethe", "pseudo-greedy (gap)")[0].variable
    gaps = {
        v: slow_sum(model, "trw", (v,)) - slow_sum(model, "mean_field", (v,))
        for v in {slow_choice(model, name, ()) for name in HEURISTICS}
    }
    assert gaps[first] == pytest.approx(min(gaps.values()), abs=ROUNDING)


@pytest.mark.parametrize("settings", ["paper", pytest.param("ours", marks=pytest.mark.large)])
def test_runs_are_reproducible_whatever_the_threads(settings):
    one = found(MIXED, settings=settings)
    two = perform(pickle.loads(pickle.dumps(one.task)), threads=2)
    assert one.rows == two.rows and one.exact == two.exact and one.seed == two.seed
    assert pickle.loads(pickle.dumps(one)) == one


def test_times_have_the_numbers_of_errors():
    timed, finished = found(ATTRACTIVE, "times"), found(ATTRACTIVE)
    without = [row for row in finished.rows if "(" not in row.selector]
    key = lambda row: (row.method, row.selector, row.clamps)  # noqa: E731
    assert sorted(map(key, timed.rows)) == sorted(key(row) for row in without if row.selector in ("none", *TIMED))
    errors = {key(row): row for row in without}
    for row in timed.rows:
        assert row.variable == errors[key(row)].variable
        assert row.log_z == pytest.approx(errors[key(row)].log_z, abs=ROUNDING)
    for method in ("mf", "bethe", "trw"):
        assert all(row.seconds > 0 for row in timed.rows)
        for selector in ("pseudo-greedy", "greedy"):  # what they try adds up
            assert all(a < b for a, b in pairwise(row.seconds for row in rows_of(timed, method, selector)))


@pytest.mark.parametrize("family", [MIXED, ATTRACTIVE])
def test_optimal_sets_are_at_least_as_good_as_greedy_ones(family):
    finished = found(family, "optimal")
    assert Counter((row.method, row.selector) for row in finished.rows) == {
        (m, s): c for m in ("mf", "bethe", "trw") for s, c in (("none", 1), ("optimal", 3), ("greedy", 3))
    }
    for method, sign in (("mf", 1), ("trw", -1), ("bethe", 1)):
        best, greedy = rows_of(finished, method, "optimal"), rows_of(finished, method, "greedy")
        assert best[0].log_z == pytest.approx(greedy[0].log_z, abs=ROUNDING)
        if method != "bethe" or family == ATTRACTIVE:
            assert all(sign * a.log_z >= sign * b.log_z - ROUNDING for a, b in zip(best, greedy, strict=True))


@pytest.mark.parametrize("experiment", ["errors", pytest.param("times", marks=pytest.mark.large)])
def test_ours_are_the_sums_of_clamp(experiment):
    finished, model = found(MIXED, experiment, "ours"), drawn(MIXED)
    ours = SETTINGS["ours"].for_model(finished.seed, 5)
    for label, method, selector in (("trw", "trw", "maxW+TRE"), ("mf", "mean_field", "pseudo-greedy")):
        rows = [*rows_of(finished, label, "none"), *rows_of(finished, label, selector)]
        steps = cz.clamp(model, method, k=5, select=selector, reweight=True, options=ours.options(label)).steps
        assert [row.variable for row in rows] == [step.variable for step in steps]
        assert [row.log_z for row in rows] == pytest.approx([step.log_z for step in steps], abs=1e-4)
    lower = [row.log_z for row in (*rows_of(finished, "mf", "none"), *rows_of(finished, "mf", "maxW+TRE"))]
    assert all(b >= a - 1e-6 for a, b in pairwise(lower))
    assert {row.selector for row in finished.rows} == {"none", "maxW+TRE", "pseudo-greedy"}
    assert all((row.seconds is not None) == (experiment == "times") for row in finished.rows)


def test_settings_are_described_in_full():
    described = {name: settings.described() for name, settings in SETTINGS.items()}
    assert described["paper"]["mf"] == {"tol": 1e-7, "max_iter": 10_000, "num_starts": 1, "seed": "of the model"}
    assert described["paper"]["bethe"]["from_mean_field"] is False and described["paper"] != described["ours"]


def test_random_starts_differ_between_models_and_not_between_branches():
    one, other = (settings_named("paper").for_model(family_named(MIXED).seed(run), 5) for run in (0, 1))
    assert one.mf.seed != other.mf.seed and one.mf.seed == one.bethe.seed == found(MIXED).seed


@pytest.mark.parametrize("settings", ["restarts", "parents", "weights", "branches"])
def test_our_settings_are_each_what_they_say(settings):
    finished, paper = found(MIXED, settings=settings), found(MIXED)
    chosen = SETTINGS[settings]
    assert {row.method for row in finished.rows} == set(chosen.methods)
    assert {row.selector for row in finished.rows} == {"none", *chosen.selectors}
    ends = {(row.method, row.clamps): row.log_z for row in finished.rows if row.selector in ("none", "maxW+TRE")}
    theirs = {(row.method, row.clamps): row.log_z for row in paper.rows if row.selector in ("none", "maxW+TRE")}
    if settings == "restarts":
        assert ends["mf", 0] >= theirs["mf", 0] - ROUNDING
    if settings == "weights":
        assert ends["trw", 0] <= theirs["trw", 0] + 1e-3
    if settings == "parents":
        assert all(ends["mf", k + 1] >= ends["mf", k] - 1e-6 for k in range(5))
    if settings == "branches":
        assert any(row.variable is None for row in finished.rows if row.clamps > 1)


@pytest.mark.parametrize("family", ["complete10[0,6]potts3", "complete10[-6,6]potts3", "complete10[-6,6]table3"])
def test_more_labels_have_the_heuristics_that_need_no_signs(family):
    finished = found(family)
    selectors = {row.selector for row in finished.rows if row.method == "trw"}
    assert selectors == {"none", "pseudo-greedy", *(name for name in HEURISTICS if "Cycles" not in name)}
    assert all(row.log_z <= finished.exact + 1e-9 for row in finished.rows if row.method == "mf")
    assert all(row.log_z >= finished.exact - 1e-9 for row in finished.rows if row.method == "trw")
    assert max(row.num_branches for row in finished.rows) == 3**5


def test_further_clamps_stand_beside_mini_buckets_and_the_exact_sum(monkeypatch):
    monkeypatch.setattr("reproduction.runs.experiments.MAX_FURTHER", 6)
    finished = perform(Task("paper", "further", MIXED, 0))
    assert [row.clamps for row in rows_of(finished, "trw", "maxW+TRE")] == [1, 2, 3, 4, 5, 6]
    (exact,) = rows_of(finished, "exact", "none")
    assert exact.log_z == finished.exact and exact.seconds > 0
    bounds = [row.log_z for row in rows_of(finished, MINI_BUCKETS, BY_LIMIT)]
    assert len(bounds) == 8 and min(bounds) >= finished.exact - 1e-9 and bounds[-1] == pytest.approx(finished.exact)


def test_files_are_clamped_as_often_as_asked(tmp_path):
    path = tmp_path / "model.uai"
    cz.write(cz.generators.grid(3, 3, rng=0), path)
    finished = perform(Task("paper", "errors", str(path), 0, 7))
    clamps = Counter(row.selector for row in finished.rows if row.method == "trw")
    assert clamps["maxW"] == clamps["pseudo-greedy"] == 7 and clamps["greedy"] == 3


def test_what_is_unknown_is_refused():
    for task in (
        Task("paper", "errors", "grid26[0,2]", 0),
        Task("their", "errors", MIXED, 0),
        Task("paper", "error", MIXED, 0),
        Task("ours", "optimal", MIXED, 0),
    ):
        with pytest.raises(OptionError):
            perform(task)
    with pytest.raises(OptionError, match="paper"):
        settings_named("papre")
