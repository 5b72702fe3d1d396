"""`sample` and `sample_blocks`: what comes back, seeds and threads, limits, and what is refused."""

import math
import os
import signal
import threading

import numpy as np
import pytest

import clampz as cz
from clampz.presolve.simplified import unchanged
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.workers import Workers
from clampz.sampling import choice, gibbs, proposals, sample
from clampz.sampling.proposals import propose

GRID = cz.generators.grid(5, 5, rng=0)
NAMED = cz.Model(
    [[0.0, 1.0], [0.0, 0.0, 0.5]],
    {(0, 1): [[1.0, 0.0, -np.inf], [0.0, 1.0, 2.0]]},
    names=["a", "b"],
    state_names=[["no", "yes"], ["x", "y", "z"]],
)
# Every kind, and what it takes to have it on a model that is narrow.
WAYS = [("exact", {}), ("rejection", {"max_table": 8}), ("weighted", {"max_table": 8}), ("gibbs", {"max_table": 8})]


def drawn(kind, options, num_samples=500, **more):
    return cz.sample(GRID, num_samples, method=kind, **options, **more)


@pytest.mark.parametrize(("kind", "options"), WAYS)
def test_the_same_seed_on_any_number_of_threads(kind, options, monkeypatch):
    monkeypatch.setattr(proposals, "BLOCK_STATES", 1000)  # several blocks
    one, three, none = (drawn(kind, options, threads=threads, rng=seed) for threads, seed in ((1, 7), (3, 7), (3, 8)))
    assert one.kind == kind and len(one) == 500
    assert np.array_equal(one.states, three.states) and np.array_equal(one.log_weights, three.log_weights)
    assert one.num_drawn == three.num_drawn and (one.log_z == three.log_z or kind == "gibbs")
    assert not np.array_equal(one.states, none.states)


def test_seeds():
    default, zero = drawn("exact", {}), drawn("exact", {}, rng=0)
    assert np.array_equal(default.states, zero.states)
    rng = np.random.default_rng(3)
    first, second = drawn("exact", {}, rng=rng), drawn("exact", {}, rng=rng)
    assert not np.array_equal(first.states, second.states)
    assert np.array_equal(first.states, drawn("exact", {}, rng=np.random.default_rng(3)).states)
    assert len(drawn("exact", {}, rng=2**100)) == 500
    for wrong in (-1, 1.5, "x"):
        with pytest.raises(cz.errors.OptionError, match="rng: expected"):
            drawn("exact", {}, rng=wrong)


@pytest.mark.parametrize(("kind", "options"), WAYS)
def test_blocks_are_the_same_samples(kind, options, monkeypatch):
    monkeypatch.setattr(proposals, "BLOCK_STATES", 1000)
    whole = drawn(kind, options)
    blocks = list(cz.sample_blocks(GRID, 500, block_size=96, method=kind, **options))
    assert [len(block) for block in blocks] == [96] * 5 + [20]
    assert np.array_equal(np.concatenate([block.states for block in blocks]), whole.states)
    assert sum(block.num_drawn for block in blocks) == whole.num_drawn


def test_blocks_without_end(monkeypatch):
    monkeypatch.setattr(sample, "STATES_IN_BLOCK", 100)
    blocks = cz.sample_blocks(GRID)
    assert [len(next(blocks)) for _ in range(3)] == [4, 4, 4]
    blocks.close()


def test_names_and_evidence():
    found = cz.sample(NAMED, 200, evidence={"b": "z"})
    assert all(found[k] == {"a": "yes", "b": "z"} for k in range(200))
    assert found.marginals[1].tolist() == [0.0, 0.0, 1.0] and found.best == {"a": "yes", "b": "z"}
    free = cz.sample(NAMED, 200)
    assert set(map(str, free)) <= {str({"a": a, "b": b}) for a in ("no", "yes") for b in "xyz"} - {
        "{'a': 'no', 'b': 'z'}"
    }
    assert free.log_z == pytest.approx(cz.exact(NAMED).log_z)
    np.testing.assert_allclose(free.scores, [NAMED.score(free[k]) for k in range(200)])
    assert cz.sample(GRID, 1)[0].keys() == set(range(25))


def test_frames():
    pd = pytest.importorskip("pandas")
    frame = cz.sample(NAMED, 10).to_frame()
    assert list(frame.columns) == ["a", "b"] and len(frame) == 10 and set(frame["a"]) <= {"no", "yes"}
    weighted = cz.sample(GRID, 10, method="weighted", max_table=8)
    assert isinstance(weighted.to_frame(), pd.DataFrame)
    assert weighted.to_frame()["log_weight"].tolist() == weighted.log_weights.tolist()


def test_what_the_samples_say_of_themselves():
    exact = drawn("exact", {})
    assert "exact" in repr(exact) and exact.effective_size == pytest.approx(500) and "elimination" in exact.reason
    rejected = drawn("auto", {"max_table": 8})
    assert rejected.kind == "rejection" and "of the draws are accepted" in rejected.reason
    assert rejected.num_drawn > 500
    assert drawn("exact", {}).reason.endswith("entries in all")
    assert cz.sample(NAMED, 5).reason == "by elimination"  # nothing was left of it
    assert "all draws would be accepted" in cz.sample(NAMED, 5, method="weighted").reason
    weighted = drawn("weighted", {"max_table": 8})
    assert 1 < weighted.effective_size < 500 and "worth about" in repr(weighted)
    assert weighted.log_z == pytest.approx(cz.exact(GRID).log_z, abs=0.5)
    markov = drawn("gibbs", {"max_table": 8})
    assert "not exact" in repr(markov) and math.isnan(markov.log_z) and markov.effective_size <= 500


def test_weights_where_rejection_would_take_too_long(monkeypatch):
    monkeypatch.setattr(choice, "SENSIBLE_SECONDS", 1e-9)
    found = drawn("auto", {"max_table": 8})
    assert found.kind == "weighted" and "would be accepted" in found.reason
    monkeypatch.setattr(choice, "LONGEST_SECONDS", 1e-9)
    with pytest.raises(cz.errors.OptionError, match=r"rejection would take .* max_table=.*method=\"weighted\""):
        drawn("rejection", {"max_table": 8})


def test_little_weight_is_said(monkeypatch):
    monkeypatch.setattr(sample, "LITTLE", 1.0)
    assert "carry all the weight" in drawn("weighted", {"max_table": 8}).reason


def test_too_wide_is_refused_before_work_begins():
    wide = cz.generators.grid(40, 40, rng=0)
    with pytest.raises(cz.errors.TooWideError, match=r"exact samples need .*memory=.*method=\"auto\""):
        cz.sample(wide, 10, method="exact", memory="50MB")
    with pytest.raises(
        cz.errors.OptionError, match=r"1,000,000 samples of 1,600 variables take 6.4 GB.*cz.sample_blocks"
    ):
        cz.sample(wide, 1_000_000, memory="1GB")
    with pytest.raises(cz.errors.TooWideError, match="lower max_table="):
        cz.sample(wide, 1, max_table=2**20, memory="200MB")


@pytest.mark.parametrize("memory", ["60MB", "200MB", None])
def test_limits_follow_from_memory(memory):
    """Whatever it is: samples, of a structure that fits; the truth is in all of them."""
    wide = cz.generators.grid(14, 14, weights=(-1, 1), rng=0)
    found = cz.sample(wide, 200, time=3, memory=memory)
    assert 0 < len(found) <= 200 and found.kind != "gibbs"


def test_smallest_and_largest_limits(monkeypatch):
    for max_table in (2, 2**4):
        monkeypatch.setattr(proposals, "SMALLEST_TABLE", max_table)
        monkeypatch.setattr(proposals, "LARGEST_TABLE", max_table)
        monkeypatch.setattr(proposals, "EXACT_SHARE", 0.0)
        assert cz.sample(GRID, 50, time=5).kind in ("rejection", "weighted")


def test_time_and_callbacks():
    assert len(drawn("exact", {}, time=60.0)) == 500
    found = drawn("exact", {}, time=0.0)
    assert len(found) == 0 and found.stopped_by == "time" and "stopped before" in found.reason
    assert np.isnan(found.marginals.flat).all() and np.isnan(found.standard_errors.flat).all()
    assert found.effective_size == 0 and "0 of 25" in repr(found)
    seen = []

    def stop(progress):
        seen.append(progress)
        raise StopIteration

    few = drawn("rejection", {"max_table": 8}, 10**5, progress=stop, threads=1)
    assert 0 < len(few) < 10**5 and few.stopped_by == "callback" and "stopped by its callback" in few.reason
    assert seen[0].num_finished == len(few) and seen[0].num_lanes == 10**5


def test_ctrl_c_returns_what_there_is():
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    found = drawn("rejection", {"max_table": 8}, 10**6, time=60.0)
    assert 0 < len(found) < 10**6 and found.stopped_by == "interrupt" and "interrupted after" in found.reason


def test_chains_that_are_stopped_early_say_where_they_are(monkeypatch):
    monkeypatch.setattr(gibbs, "STEPS_BEFORE", 10**9)
    found = drawn("gibbs", {"max_table": 8}, time=1.0)
    assert len(found) == 16 and "time was over after 16 of 500" in found.reason and np.isfinite(found.scores).all()


def test_nothing_to_draw():
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    none = cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    with pytest.raises(cz.errors.ModelError, match="Z = 0: no configuration is possible"):
        cz.sample(none)
    with pytest.raises(cz.errors.EvidenceError):
        cz.sample(NAMED, evidence={"a": "no", "b": "z"})
    with pytest.raises(cz.errors.ModelError, match="Z = 0: no configuration is possible"):
        cz.sample(cz.Model.from_factors([], [((), np.array(-np.inf))]))


def test_draws_none_of_which_is_possible(monkeypatch):
    """Z = 0 that no bound shows: there is an end, and it is said."""
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    none = cz.Model(np.zeros((4, 3)), {(i, j): differ for i in range(4) for j in range(i)})
    monkeypatch.setattr(choice, "simplify", lambda model, **_: unchanged(model, "sum"))
    monkeypatch.setattr(choice, "HOPELESS_DRAWS", 1000)
    found = cz.sample(none, 10, max_table=9, method="weighted")
    assert len(found) == 0 and "no more could be had after 0 of 10" in found.reason
    found = cz.sample(none, 10, max_table=9, method="rejection", time=60.0)
    assert len(found) == 0 and "no more could be had after 0 of 10" in found.reason
    with pytest.raises(cz.errors.ModelError, match="chains need one to begin at"):
        cz.sample(none, 10, max_table=9, method="gibbs")


def test_bad_input():
    for options, message in (
        ({"num_samples": -1}, "num_samples: expected a whole number >= 0"),
        ({"method": "exakt"}, "unknown method 'exakt'; did you mean 'exact'"),
        ({"max_table": 1}, "max_table: expected None or a whole number >= 2"),
        ({"time": -1.0}, "time: expected seconds >= 0"),
        ({"threads": 0}, "threads: expected None or a whole number >= 1"),
        ({"memory": "lots"}, "memory: expected bytes"),
    ):
        with pytest.raises(cz.errors.OptionError, match=message):
            cz.sample(GRID, **options)
    with pytest.raises(cz.errors.OptionError, match="block_size: expected None or a whole number >= 1"):
        cz.sample_blocks(GRID, block_size=0)
    with pytest.raises(cz.errors.EvidenceError):
        cz.sample(GRID, evidence={99: 0})
    with pytest.raises(cz.errors.EvidenceError):  # before the first block is asked for
        cz.sample_blocks(GRID, evidence={99: 0})


def test_models_of_every_size():
    assert cz.sample(cz.Model([]), 3).states.shape == (3, 0)
    assert cz.sample(cz.Model([[0.5]]), 3).states.tolist() == [[0], [0], [0]]
    assert len(cz.sample(GRID, 0)) == 0
    strong = cz.Model(np.zeros((2, 2)), {(0, 1): [[1e15, 0.0], [0.0, 1e15]]})
    assert (np.diff(cz.sample(strong, 100).states, axis=1) == 0).all()
    chain = cz.generators.from_graph(30_000, [(i, i + 1) for i in range(29_999)], rng=0)
    found = cz.sample(chain, 20)
    assert found.kind == "exact" and np.isfinite(found.scores).all()


def test_dense_models_have_smaller_cliques_where_tables_would_take_too_long(monkeypatch):
    """A structure may have many more entries than its limit lets expect, and laying out is not left half way."""
    dense = cz.generators.complete(40, rng=0)

    def entries(time=math.inf):
        with Workers(1) as workers:
            return propose(dense, None, 10**8, 1.0, Budget(time), workers).tables.structure.num_entries

    usual = entries()
    monkeypatch.setattr(proposals, "LAYING_SECONDS", 2 * proposals.BOUND_SHARE / usual)
    assert entries() < usual / 2
    monkeypatch.setattr(proposals, "LAYING_SECONDS", 1e6)
    with pytest.raises(Cancelled):
        entries(100.0)


@pytest.mark.parametrize("error", [Cancelled(), cz.errors.TooWideError("", width=1, num_bytes=1)])
def test_other_structures_that_do_not_fit_lose_nothing(error, monkeypatch):
    """A bound is there to draw from: what would be better is done without."""
    real = proposals.Structure.of

    def of(*args, seed=0, **options):
        if seed:
            raise error
        return real(*args, seed=seed, **options)

    monkeypatch.setattr(proposals.Structure, "of", of)
    monkeypatch.setattr(proposals, "_exact_structure", lambda *_, **__: None)
    model = cz.generators.grid(7, 7, weights=(-2, 2), rng=0)
    assert len(cz.sample(model, 20, max_table=16, time=60.0, method="weighted")) == 20


def test_large_tables_take_less_for_each_entry():
    """Millions of entries in a few hundred cliques are laid out in a moment."""

    class ModeTrace(Budget):
        def left(self, share=1.0):
            return 0.2 * share

    stereo = cz.generators.grid(20, 20, toroidal=False, labels=60, rng=0)
    with Workers(1) as workers:
        found = propose(stereo, None, 10**9, 0.2, ModeTrace(), workers)
    assert found.tables.structure.num_entries > 2e6 and math.isfinite(found.bound)
