"""A strategy of bounding by itself: what others would have found for it is found before."""

import numpy as np

import clampz as cz
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.leaves.successive_halving import SuccessiveHalving, Trial
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies.branch_and_bound import BranchAndBound
from clampz.bounding.strategies.cutset import Cutset
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.strategies.draws import Draws
from clampz.bounding.strategies.mini_buckets import MiniBuckets
from clampz.bounding.strategies.planar import Planar
from clampz.exact_inference.plans import ExactPlan
from clampz.model.batch import Batch
from clampz.planar.plans import PlanarPlan
from clampz.runtime.budget import Budget


def halving_of(model, ends="upper", max_table=8):
    """Successive halving that has come to its end, with a bound by small mini-buckets."""
    halving = SuccessiveHalving()
    halving.end_with(MiniBucketBounds(model, Shape(max_table), Shape(max_table), 2.0**40))
    state = WarmStart.even(model)
    for end in ("upper", "lower") if ends == "both" else (ends,):
        found = halving.mini_buckets.bounds(model.unary.flat, state, 5, end)
        asked, state = Trial(halving.mini_buckets, found.state, 5, end), found.state
        halving.take(asked, (found.lower, found.upper), state, halving.mini_buckets, 0.1)
    halving.state, halving.finished = state, True
    return halving


def planar_plan(model):
    """The plan of a planar model, if it is one."""
    batch = Batch.of(model)
    found = PlanarPlan.of(model, marginals=False, budget=Budget())
    return ExactPlan(batch, found, False) if isinstance(found, PlanarPlan) else None


def alone(kind, model, **options):
    """A strategy of this kind that has begun, on a problem of its own."""
    problem = Problem(model, BoundOptions(**{"threads": 1, "memory": "1GB", "gap": 0.0, **options}))
    strategy = kind(problem)
    strategy.begin(Budget(60.0), 1)
    prepare(kind, problem)
    return strategy


def prepare(kind, problem):
    """Tell a problem what others find out that this kind waits for."""
    facts, root = problem.facts, problem.frontier.root
    facts.is_planned = facts.is_estimated = True
    facts.is_bounded = kind is not MiniBuckets
    if kind in (BranchAndBound, Cutset, Diving, Draws) and problem.rest.num_variables:
        root.submodel.halving = halving_of(problem.rest, "both")
    if kind is BranchAndBound:
        problem.frontier.push(root)
    if kind is Planar:
        facts.plan = planar_plan(problem.user_model)


def quanta(strategy, seconds, budget, most):
    """Have quanta done one after another, and yield the problem after each."""
    for _ in range(most):
        quantum = None if strategy.is_done else strategy.next(seconds, budget, 1)
        if quantum is None:
            return
        strategy.take(quantum, quantum.function(*quantum.args, quantum.budget))
        yield strategy.problem


def satisfiability(n, seed=0, clauses=4.0):
    """Clauses of three variables: hard zeros and nothing else."""
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(n, 3, replace=False).tolist()) for _ in range(int(clauses * n))]
    tables = [np.where(np.arange(8).reshape(2, 2, 2) == rng.integers(8), -np.inf, 0.0) for _ in scopes]
    return cz.Model.from_factors([2] * n, list(zip(scopes, tables, strict=True)))
