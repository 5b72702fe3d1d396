"""The schema of checkpoints: a search as arrays."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from clampz.bounding.checkpoints import file
from clampz.bounding.problem import Problem
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.portfolio.problem import Gains

Bytes = NDArray[np.uint8]


class SavedSearch(NamedTuple):
    """The arrays of a checkpoint.  Ragged arrays are end to end; indices are from 0, and -1 is none.

    model           (32,)  SHA-256 of the user's model
    simplified      (1,)   whether the search is over the reduced model that presolve leaves of it
    trace_*         (T,)   the brackets so far
    gain_*          (G,)   who moved which end when: 0 is the lower one; strategies by their place in a list of names
    strategies             these names, a line of UTF-8 each

    Submodels; the first is the whole, and its model is not saved:
    first_max_table, too_wide
                    (M,)   as they have them
    max_table, seed (M,)   of their mini-buckets where successive halving has ended; a size of 0 where it begins anew
    below_max_table, below_seed
                    (M,)   of the structures of their lower bounds
    num_main        (M,)   variables that the lower bound's main has: all or none
    num_variables, num_edges, num_factors, constant
                    (M-1,) of the others' models; num_states, unary, edges, pairwise and the factors' num_scope (of each
                           factor), scopes and tables are their contents

    Warm starts of leaves:
    state_submodel  (Q,)   whose it is
    sizes           (4Q,)  of its arrays
    values                 these, one state after another

    Nodes, parents before their children:
    parent, submodel, state, lower, upper, other, is_and, closed
                    (N,)   as they have them; open leaves alone have states
    num_clamps      (N,)   clamp_variable, clamp_size and clamp_states have them
    """

    model: Bytes
    simplified: Bytes
    trace_seconds: Floats
    trace_lower: Floats
    trace_upper: Floats
    trace_leaves: Integers
    gain_seconds: Floats
    gain_strategy: Integers
    gain_end: Bytes
    gain_before: Floats
    gain_after: Floats
    strategies: Bytes
    first_max_table: Integers
    too_wide: Integers
    max_table: Integers
    seed: Integers
    below_max_table: Integers
    below_seed: Integers
    num_main: Integers
    main: Integers
    num_variables: Integers
    num_edges: Integers
    num_factors: Integers
    constant: Floats
    num_states: Integers
    unary: Floats
    edges: Integers
    pairwise: Floats
    num_scope: Integers
    scopes: Integers
    tables: Floats
    state_submodel: Integers
    sizes: Integers
    values: Floats
    parent: Integers
    submodel: Integers
    state: Integers
    lower: Floats
    upper: Floats
    other: Floats
    is_and: Bytes
    closed: Bytes
    num_clamps: Integers
    clamp_variable: Integers
    clamp_size: Integers
    clamp_states: Integers


_KIND_OF: dict[Any, file.Kind] = {Floats: file.FLOATS, Integers: file.INTEGERS, Bytes: file.BYTES}
KINDS = [_KIND_OF[hint] for hint in get_type_hints(SavedSearch).values()]


def saved_search(problem: Problem) -> SavedSearch:
    """Collect the arrays of a search that is between two brackets."""
    nodes, parents = [problem.frontier.root], [-1]
    for number, node in enumerate(nodes):  # grows as it goes
        nodes.extend(node.children)
        parents.extend([number] * len(node.children))
    submodels = list({id(node.submodel): node.submodel for node in nodes}.values())
    number_of = {id(submodel): number for number, submodel in enumerate(submodels)}
    leaves = [node for node in nodes if not node.closed and not node.children]
    submodel_of = {id(leaf.state): number_of[id(leaf.submodel)] for leaf in leaves}
    states = list({id(leaf.state): leaf.state for leaf in leaves if leaf.state is not None}.values())
    place = {id(state): number for number, state in enumerate(states)}
    state_of = {id(leaf): place[id(leaf.state)] for leaf in leaves if leaf.state is not None}
    clamps = [clamp for node in nodes for clamp in node.clamps]
    halvings = [submodel.halving for submodel in submodels]
    found = [each.mini_buckets if each.finished else None for each in halvings]
    shapes = [(*each.above, *each.below, len(each.main)) if each else (0, 0, 0, 0, 0) for each in found]
    max_table, seed, below_max_table, below_seed, num_main = map(_integers, zip(*shapes, strict=True))
    models = [submodel.model for submodel in submodels[1:]]
    names = list(Gains(problem.gains).by_strategy())
    return SavedSearch(
        model=np.frombuffer(digest(problem.user_model), dtype=np.uint8),
        simplified=_bytes([problem.simplified]),
        trace_seconds=_floats(point.seconds for point in problem.trace),
        trace_lower=_floats(point.lower for point in problem.trace),
        trace_upper=_floats(point.upper for point in problem.trace),
        trace_leaves=_integers(point.num_leaves for point in problem.trace),
        gain_seconds=_floats(gain.seconds for gain in problem.gains),
        gain_strategy=_integers(names.index(gain.strategy) for gain in problem.gains),
        gain_end=_bytes(gain.end == "upper" for gain in problem.gains),
        gain_before=_floats(gain.before for gain in problem.gains),
        gain_after=_floats(gain.after for gain in problem.gains),
        strategies=np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8),
        first_max_table=_integers(submodel.halving.first_max_table for submodel in submodels),
        too_wide=_integers(submodel.too_wide for submodel in submodels),
        max_table=max_table,
        seed=seed,
        below_max_table=below_max_table,
        below_seed=below_seed,
        num_main=num_main,
        main=_joined(each.main for each in found if each),
        num_variables=_integers(model.num_variables for model in models),
        num_edges=_integers(model.num_edges for model in models),
        num_factors=_integers(len(model.factors) for model in models),
        constant=_floats(model.constant for model in models),
        num_states=_joined(model.num_states for model in models),
        unary=_joined(model.unary.flat for model in models),
        edges=_joined(model.edges.ravel() for model in models),
        pairwise=_joined(model.pairwise.flat for model in models),
        num_scope=_joined(np.diff(model.factors.scope_start) for model in models),
        scopes=_joined(model.factors.variables for model in models),
        tables=_joined(model.factors.flat for model in models),
        state_submodel=_integers(submodel_of[id(state)] for state in states),
        sizes=_integers(len(array) for state in states for array in state.arrays),
        values=_joined(array for state in states for array in state.arrays),
        parent=_integers(parents),
        submodel=_integers(number_of[id(node.submodel)] for node in nodes),
        state=_integers(state_of.get(id(node), -1) for node in nodes),
        lower=_floats(node.lower for node in nodes),
        upper=_floats(node.upper for node in nodes),
        other=_floats(node.other for node in nodes),
        is_and=_bytes(node.is_and for node in nodes),
        closed=_bytes(node.closed for node in nodes),
        num_clamps=_integers(len(node.clamps) for node in nodes),
        clamp_variable=_integers(variable for variable, _ in clamps),
        clamp_size=_integers(len(chosen) for _, chosen in clamps),
        clamp_states=_integers(state for _, chosen in clamps for state in chosen),
    )


def digest(model: Model) -> bytes:
    """Return the SHA-256 of all that makes models equal or not."""
    contents, found = model.contents, hashlib.sha256()
    larger = contents.factors
    floats = contents.unary, contents.pairwise, larger.flat, _floats([contents.constant])
    integers = contents.num_states, contents.edges.ravel(), larger.scope_start, larger.variables
    for array in (*floats, *integers):
        plain = np.ascontiguousarray(array, "<f8" if array.dtype == np.float64 else "<i8") + 0  # (-0.0 is 0.0)
        found.update(len(plain).to_bytes(8, "little"))
        found.update(plain.data)
    found.update(json.dumps([contents.names, contents.state_names]).encode())
    return found.digest()


def _floats(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)


def _integers(values: Iterable[int]) -> Integers:
    return np.fromiter(values, dtype=np.int64)


def _bytes(values: Iterable[bool]) -> Bytes:
    return np.fromiter(values, dtype=np.uint8)


def _joined(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=np.uint8), *arrays])
