"""What to do next about the leaf that matters most: sum it exactly, find better mini-buckets, or clamp a variable."""

import math
from dataclasses import replace

import numpy as np

from clampz.approximations.trw import trw
from clampz.bounding.leaves.evaluate import FINISH_SECONDS
from clampz.bounding.options import CUTS, BoundOptions
from clampz.bounding.tree.frontier import Expand, Frontier, Refine, work_on
from clampz.bounding.tree.nodes import Node, groups
from clampz.clamping.selectors import scores
from clampz.clamping.selectors.edge_strength import sum_over_edges
from clampz.clamping.selectors.entropy import entropies
from clampz.clamping.selectors.scoring import TRE
from clampz.exact_inference.scopes import least_bytes
from clampz.model import Model
from clampz.model.components import num_components
from clampz.model.conditioning import states_left
from clampz.runtime.budget import Budget

# Evaluations of the bounds of children, which begin where their parent ended.
CHILD_EVALUATIONS = 12
# What is left may be summed exactly if that takes at most this share of the time left, and in how many pieces.
SPRINT_SHARE, MOST_PIECES = 0.6, 256
# What keeps scores of variables apart where all else is equal: the share of the strength of all of its edges, a little
# entropy, and a little score.
ALL_EDGES, LITTLE_ENTROPY, LITTLE_SCORE = 1e-2, 1e-3, 1e-9


def choose_branching(frontier: Frontier, budget: Budget, num_threads: int) -> Refine | Expand | None:
    """Return the work that is expected to gain most, on the leaves that wait; None if nothing is left to do."""
    options = frontier.options
    while (node := frontier.pop()) is not None:
        found = _first(node, options, budget) or _sprint(node, options, budget, num_threads)
        model = node.submodel.model
        if found is None and not node.clamps and num_components(model) > 1 and frontier.may_split(model):
            frontier.split(node, model, 0.0)
            continue
        halving = node.submodel.halving
        if found is None and not node.clamps and not halving.finished:
            found = refine_by_halving(node, options, budget, num_threads)
            if found is None and halving.is_busy:
                continue  # it comes back when that is done
            if halving.has_more:
                frontier.push(node)  # for the other workers
        if found is None and halving.mini_buckets is None and not _has_room(model, options):
            frontier.pruned = True  # it stays as it is
            continue
        found = found or _clamp(node, options, budget)
        if found is not None:
            return found
        frontier.finish(node)
    return None


def _has_room(model: Model, options: BoundOptions) -> bool:
    """Whether there is memory for bounds on branches of a model, or for sums over them."""
    return trw.fits(model, options.worker_bytes) or (options.exact and least_bytes(model) <= options.worker_bytes)


def _first(node: Node, options: BoundOptions, budget: Budget) -> Refine | None:
    """Ask for quick bounds on a leaf that nothing is known of."""
    if node.upper < math.inf or node.submodel.begun:
        return None
    node.submodel.begun = True
    return Refine(node, work_on([node], options, budget))


def _sprint(node: Node, options: BoundOptions, budget: Budget, num_threads: int) -> Refine | Expand | None:
    """Sum all that is below a leaf exactly, in pieces of a moment each, where the time left suffices."""
    submodel = node.submodel
    if not options.exact or 0 <= len(node.clamps) - submodel.too_wide < 3:
        return None
    seconds = budget.left(SPRINT_SHARE) * num_threads
    plan = submodel.slicer.plan(node.unary(), seconds, options.worker_bytes, budget=budget)
    if plan is None:
        submodel.too_wide = len(node.clamps)
        return None
    if plan.seconds <= FINISH_SECONDS:
        return Refine(node, replace(work_on([node], options, budget), start=node.state))
    if not plan.fixed:
        return None
    pieces = [node]
    for variable in plan.fixed:
        pieces = [child for piece in pieces for child in _branches(node, piece, variable, apart=True)]
        if plan.seconds / len(pieces) <= FINISH_SECONDS or len(pieces) >= MOST_PIECES:
            break
    return Expand(node, replace(work_on(pieces, options, budget), exact=False), pieces)


def refine_by_halving(node: Node, options: BoundOptions, budget: Budget, num_threads: int) -> Refine | None:
    """Ask for the next trial of mini-buckets for a submodel as a whole."""
    step = node.submodel.halving.next(node.submodel.model, options, num_threads * budget.left())
    if step is None:
        return None
    work = replace(
        work_on([node], options, budget),
        mini_buckets=step.mini_buckets,
        start=step.state,
        num_evaluations=step.num_evaluations,
        ends=step.ends,
        exact=False,
    )
    return Refine(node, work, step)


def _clamp(node: Node, options: BoundOptions, budget: Budget) -> Expand | None:
    """Branch at the variable that promises most; None where none has a choice of states left."""
    variable = _choose(node, options.select)
    if variable is None:
        return None
    children = _branches(node, node, variable)
    work = work_on(children, options, budget)
    mini_buckets = node.submodel.halving.mini_buckets
    work = replace(work, mini_buckets=mini_buckets, start=node.state, num_evaluations=CHILD_EVALUATIONS)
    return Expand(node, work, children)


def _branches(parent: Node, node: Node, variable: int, *, apart: bool = False) -> list[Node]:
    """Return a parent's children: a node at or below it, clamped to the states of one more variable."""
    return [
        Node(parent, parent.submodel, (*node.clamps, (variable, group)), -math.inf, parent.upper)
        for group in groups(node, variable, apart=apart)
    ]


def _choose(node: Node, select: str) -> int | None:
    """Choose the variable to clamp: where the upper bound loses most, or by strength and entropy, or by a selector."""
    submodel, unary = node.submodel, node.unary()
    model = submodel.model
    possible = unary > -np.inf
    left = states_left(possible, model.unary.start)
    if (left <= 1).all():
        return None
    if select == CUTS and node.state is not None and len(node.state.loss):
        return int(np.argmax(np.where(left > 1, node.state.loss, -1.0)))
    known = node.state is not None and node.state.beliefs.any()
    beliefs = node.state.beliefs if node.state is not None and known else np.where(possible, 0.5, 0.0)
    entropy = entropies(model, beliefs[:, None])[:, 0] + LITTLE_ENTROPY
    open_edges = (left[model.edges] > 1).all(axis=1)
    total = sum_over_edges(model.num_variables, model.edges, np.tanh(model.strength / 4) * open_edges)
    total = total + np.bincount(model.factors.variables, minlength=model.num_variables)
    if select == CUTS:
        weight = total
    else:
        weight = scores(model, select.removesuffix(TRE), clamped=np.flatnonzero(left <= 1).tolist())
        weight = weight + 1e-6 * ALL_EDGES * total if select.endswith(TRE) else weight / entropy
    return int(np.argmax(np.where(left > 1, weight * entropy + LITTLE_SCORE, -1.0)))
