"""What a search begins with: a plan of the whole sum, a count, quick bounds by mean field and TRW, Bethe's value."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import BETHE_TOL
from clampz.approximations.trw import trw
from clampz.bounding.bracket import PointEstimate
from clampz.bounding.options import WHOLE_MEMORY, BoundOptions
from clampz.bounding.strategies.exact_sum import WHOLE_TIME, WHOLE_TIME_ALONE
from clampz.clamping.branches import clamps_that_fit
from clampz.clamping.clamp import clamp_on
from clampz.exact_inference.plans import ExactPlan, plan_whole
from clampz.exact_inference.running import PLANNING_SHARE
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.lane_memory import is_small
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import Counted, count
from clampz.numerics import Floats
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew, Job

# A plan of the sum of the whole is waited for during the share of the time for plans, and looked for beside other work
# during the longer one.  Beyond this number of edges, where methods need the cores, it is not waited for.
LONG_PLANNING_SHARE, MANY_EDGES = 0.5, 20_000
# The share of the memory that programs which count may have; the share of the time, and seconds at most, that a count
# of what is nearly all constraints has the cores to itself: bounds do not get far there.
COUNTING_MEMORY = 0.3
COUNTING_SHARE, LONGEST_COUNTING = 0.6, 30.0
# Time beyond which the order of that is looked for thoroughly, in seconds.
THOROUGH_SECONDS = 0.3
# The share of the time that mean field and TRW may each take at the start, on small models and on those whose first
# sweeps take long; and seconds that they have in any case, and at the most: who looks on wants to see something.
QUICK_SHARE, LARGE_SHARE, QUICK_SECONDS, LONGEST_QUICK = 1 / 8, 0.15, 0.01, 1.0
# Seconds for each entry of the edges' tables that either takes for its first sweep, about, but on binary models.
SWEEP_SECONDS_PER_ENTRY = 3e-8
# Variables that Bethe's estimate is clamped at, the branches they may make, and the seconds and the share of the time
# that it may take.
MOST_BETHE_CLAMPS, MOST_BETHE_BRANCHES, BETHE_SECONDS, BETHE_SHARE = 3, 64.0, 2.0, 0.05
BETHE_SELECT = "maxW+TRE"
# Seconds for each edge, and for each entry of its table, that it takes to begin, about: where there are no more, Bethe
# is not asked.
BETHE_SECONDS_PER_EDGE, BETHE_SECONDS_PER_ENTRY = 2e-6, 3e-8
NO_MEMORY_FOR_BETHE = "There was not memory enough for Bethe."


class InitialBounds(NamedTuple):
    """Ends of log Z by mean field and TRW, the marginals (S,) of either, and whether mean field has converged."""

    lower: float
    upper: float
    marginals: Floats
    beliefs: Floats
    converged: bool


def bethe_leads(model: Model) -> bool:
    """Whether Bethe's lower bound beats that of mini-buckets: it is one, and edges are too many for large tables."""
    return model.is_balanced and model.num_edges > MANY_EDGES


def start_plan(
    original: Model, rest: Model, error: float, options: BoundOptions, crew: Crew, budget: Budget
) -> Job[ExactPlan | None]:
    """How to sum all of a model, of which simplifying left the rest: looked for beside all other work, and waited for
    a while."""
    many = rest.num_edges > MANY_EDGES
    job = crew.beside(
        plan_whole,
        original,
        rest,
        error,
        budget.left(WHOLE_TIME_ALONE if crew.num_threads == 1 else WHOLE_TIME),
        WHOLE_MEMORY * options.num_bytes,
        budget.left() > THOROUGH_SECONDS,
        crew.num_threads,
        budget.share(PLANNING_SHARE if many else LONG_PLANNING_SHARE),
    )
    if not many:
        job.is_done_within(budget.share(PLANNING_SHARE))
    return job


def start_count(rest: Model, options: BoundOptions, crew: Crew, budget: Budget) -> Job[Counted]:
    """A count of a model, beside all other work."""
    memory = int(COUNTING_MEMORY * options.num_bytes)
    return crew.beside(partial(count, rest, budget=budget, memory=memory))


def wait_for_count(job: Job[Counted], rest: Model, budget: Budget) -> Job[Counted]:
    """The count, waited for where there is next to nothing but constraints."""
    if worth_counting(rest, math.inf, first=True):
        job.is_done_within(Budget(min(budget.left(COUNTING_SHARE), LONGEST_COUNTING), within=budget))
    return job


def initial_bounds(
    model: Model, options: BoundOptions, budget: Budget, most: float, num_bytes: float
) -> InitialBounds | None:
    """Bound log Z by mean field and TRW, for a moment each, `most` seconds at most.

    None where there is no time even for their first sweeps, or no memory: on larger factors TRW works on an equivalent
    many times as large.
    """
    if not mean_field.fits(model, num_bytes) or (budget.must_stop() and not is_small(model)):
        return None
    batch = Batch.of(model)
    share = QUICK_SHARE if is_small(model) else LARGE_SHARE
    sweep = (
        0.0 if is_small(model) or model.pair_form is not None else SWEEP_SECONDS_PER_ENTRY * len(model.pairwise.flat)
    )
    if sweep > min(budget.left(share), LONGEST_QUICK):
        return None

    def limits(**more: Any) -> dict[str, Any]:
        seconds = max(QUICK_SECONDS, min(budget.left(share), LONGEST_QUICK, most))
        return {"max_iter": options.max_iter, "threads": options.threads, "time": seconds, **more}

    fields = mean_field.solve(batch, mean_field.options(None, limits(seed=options.seed)), within=budget)
    if not trw.fits(model, num_bytes) or (budget.must_stop() and not is_small(model)):
        marginals = fields.marginals_flat[:, 0]
        return InitialBounds(float(fields.lower[0]), math.inf, marginals, marginals, bool(fields.converged[0]))
    trees = trw.solve(batch, trw.options(None, limits()), within=budget)
    ends = float(fields.lower[0]), float(trees.upper[0])
    return InitialBounds(*ends, fields.marginals_flat[:, 0], trees.marginals_flat[:, 0], bool(fields.converged[0]))


def bethe_estimate(
    model: Model, options: BoundOptions, budget: Budget, most: float, num_bytes: float
) -> tuple[PointEstimate, float]:
    """Return Bethe's value with a few variables clamped, and a lower bound on log Z.

    There is no value where Bethe does not converge in a small share of the time, `most` seconds at most, or lacks
    memory; the bound is -inf unless the model is attractive or balanced.
    """
    seconds = min(BETHE_SECONDS, budget.left(BETHE_SHARE), most)
    if seconds <= BETHE_SECONDS_PER_EDGE * model.num_edges + BETHE_SECONDS_PER_ENTRY * len(model.pairwise.flat):
        return PointEstimate(None, "There was no time for Bethe."), -math.inf
    largest = np.sort(model.num_states)[::-1][:MOST_BETHE_CLAMPS].astype(np.float64)
    wanted = int(np.count_nonzero(np.cumprod(largest) <= MOST_BETHE_BRANCHES))
    num_clamps = clamps_that_fit(model, wanted, limit=int(num_bytes))
    if num_clamps < 0:
        return PointEstimate(None, NO_MEMORY_FOR_BETHE), -math.inf
    limits: dict[str, Any] = {"time": seconds, "tol": BETHE_TOL, "threads": options.threads}
    first = bethe.solve(Batch.of(model), bethe.options(None, limits), within=budget)[0]
    found = clamp_on(first, k=num_clamps, select=BETHE_SELECT, within=budget, memory=int(num_bytes), **limits)
    converged = [step.log_z for step in found.steps if step.converged]
    guess = (
        PointEstimate(converged[-1])
        if converged
        else PointEstimate(None, "Bethe did not converge in its share of the time.")
    )
    return guess, found.lower if found.bound == "lower" else -math.inf
