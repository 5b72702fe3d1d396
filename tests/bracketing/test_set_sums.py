"""Rounds of sums beside a search: which sets, when they begin, and when they are left alone."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.bracketing import separators, set_sums
from clampz.bracketing.dives import Dives
from clampz.bracketing.ladder import Ladder, Try
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.regions import LeafState, Regions, Shape
from clampz.bracketing.separators import Separated
from clampz.bracketing.set_sums import SetSums
from clampz.watch import Watch
from clampz.workers import Crew

WIDE = cz.generators.complete(9, weights=(-2, 2), rng=0)
NO_ENDS = (-math.inf, math.inf)


def climbed(model, ends="upper", *, finished=True):
    ladder = Ladder()
    ladder.end_with(Regions(model, Shape(8), Shape(8), 2.0**40))
    found = ladder.regions.bounds(model.unary.flat, LeafState.even(model), 5, ends)
    asked = Try(ladder.regions, found.state, 5, ends)
    ladder.take(asked, (found.lower, found.upper), found.state, ladder.regions, 0.1)
    ladder.state, ladder.finished = found.state, finished
    return ladder


def with_zeros(model):
    flat = model.contents.pairwise.copy()
    flat[0] = -np.inf
    return cz.Model.from_contents(model.contents._replace(pairwise=flat))


def begun(sums, ladder, ends=NO_ENDS, crew=None, watch=None, summed=False):
    return sums.next(ladder, ends, crew, watch or Watch(60.0), whole_is_summed=summed)


@pytest.fixture
def crew():
    with Crew(None, 2) as found:
        yield found


@pytest.mark.parametrize(("model", "kind"), [(WIDE, Separated), (with_zeros(WIDE), Dives)])
def test_dives_where_there_are_zeros_and_separators_where_there_are_none(crew, model, kind):
    sums = SetSums(model, BoundOptions())
    assert begun(sums, None, crew=crew) is None and begun(sums, Ladder(), crew=crew) is None
    assert (begun(sums, climbed(model, "lower"), crew=crew) is None) == (kind is Separated)  # no upper bound yet
    sums = SetSums(model, BoundOptions())
    job = begun(sums, climbed(model), crew=crew)
    assert job is not None and isinstance(sums._sets, kind)
    assert begun(sums, climbed(model), crew=crew) is None  # one at a time
    assert job.result()[0] <= cz.exact(model).upper


def test_fixed_plans_and_sums_of_the_whole_go_without(crew):
    assert begun(SetSums(WIDE, BoundOptions(limit=8, leaves=4)), climbed(WIDE), crew=crew) is None
    assert begun(SetSums(with_zeros(WIDE), BoundOptions(exact=False)), climbed(with_zeros(WIDE)), crew=crew) is None
    sums = SetSums(WIDE, BoundOptions())
    assert begun(sums, climbed(WIDE), crew=crew, summed=True) is None
    assert begun(sums, climbed(WIDE), crew=crew) is not None


def after_first_round(crew, monkeypatch, **options):
    """A separator is chosen."""
    monkeypatch.setattr(separators, "LEAST_ENTRIES", 4.0)
    monkeypatch.setattr(separators, "MOST_DRAWS", 1)
    monkeypatch.setattr(separators, "MOST_ORDERS", 2)
    monkeypatch.setattr(set_sums, "sum_sets", lambda sets, seconds, watch: (sets.go_on(watch), math.inf))
    sums, watch = SetSums(WIDE, BoundOptions(**options)), Watch(60.0)
    found = begun(sums, climbed(WIDE), crew=crew, watch=watch).result()
    sums.take(found, NO_ENDS, crew, watch)
    assert sums._sets.planned is not None and not sums._sets.num_sums
    return sums, watch


def test_sums_wait_for_the_ladder_and_must_promise_something(crew, monkeypatch):
    sums, watch = after_first_round(crew, monkeypatch)
    truth = cz.exact(WIDE).log_z
    assert begun(sums, climbed(WIDE, finished=False), crew=crew, watch=watch) is None
    assert begun(sums, climbed(WIDE), ends=(truth + 5, truth + 6), crew=crew, watch=watch) is None
    assert begun(sums, climbed(WIDE), crew=crew, watch=watch) is None  # it is over for good


def test_a_round_waits_while_the_others_close_more(crew, monkeypatch):
    sums, watch = after_first_round(crew, monkeypatch)
    truth = cz.exact(WIDE).log_z
    ends = truth - 1.0, truth + 1.0
    sums._rate = 1e6
    assert begun(sums, climbed(WIDE), ends, crew, watch) is None and sums._until > watch.used
    sums._until = watch.used  # the pause is over, and the others have done nothing
    assert begun(sums, climbed(WIDE), ends, crew, watch) is not None


def test_rounds_that_come_to_nothing_are_the_last(crew, monkeypatch):
    sums, watch = after_first_round(crew, monkeypatch)
    for _ in range(set_sums.MOST_IDLE):
        assert not sums._is_over
        sums._num_rounds += 1
        sums.take(NO_ENDS, (0.0, 1.0), crew, watch)
    assert sums._is_over


def test_one_thread_takes_turns(monkeypatch):
    with Crew(None, 1) as crew:
        sums, _ = after_first_round(crew, monkeypatch)
        assert sums._until > 0.0


def test_a_search_holds_with_it_and_without_exact_sums_it_never_sums_all(monkeypatch):
    model, rounds, take = cz.generators.grid(10, 10, weights=(-6, 6), rng=0), [], SetSums.take

    def spied(self, found, ends, *more):
        rounds.append(found)
        take(self, found, ends, *more)
        assert not self.complete

    monkeypatch.setattr(SetSums, "take", spied)
    truth = cz.exact(model)
    for found in cz.bounds(model, time=60.0, gap=0.0, exact=False, limit=64):
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if len(rounds) > 1:
            break
    assert rounds and all(lower <= truth.upper for lower, _ in rounds)
