"""What a checkpoint has of a search, as arrays."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from clampz.bracketing import sealed
from clampz.bracketing.search import Search
from clampz.model import Model
from clampz.numerics import Floats, Integers

Bytes = NDArray[np.uint8]


class Kept(NamedTuple):
    """What a file has.  Ragged arrays are end to end; all indices are from 0, and -1 is none.

    model           (32,)  SHA-256 of the user's model
    simplified      (1,)   whether the search is about what simplifying leaves of that
    slack           (1,)   what the pairwise equivalent may be off by
    trace_*         (T,)   the brackets so far

    Submodels; the first is the whole, and its model is not kept:
    first_limit, gap, tried, refined, too_wide
                    (M,)   as they have them
    num_masks       (M,)   subgraphs of the narrow parts; 0 for no narrow parts
    narrow_limit    (M,)   table entries of these; labels and masks are theirs, submodel by submodel
    num_variables, num_edges, constant
                    (M-1,) of the others' models; num_states, unary, edges and pairwise are their contents

    Where the bounds of leaves have got to:
    state_submodel  (Q,)   whose it is
    num_shifts      (Q,)   shift_size has the length of each
    values                 marginals, beliefs and shifts, one state after another

    Nodes, parents before their children:
    parent, submodel, state, lower, upper, other, is_and, settled
                    (N,)   as they have them; open leaves alone have states
    num_clamps      (N,)   clamp_variable, clamp_size and clamp_states have them
    """

    model: Bytes
    simplified: Bytes
    slack: Floats
    trace_seconds: Floats
    trace_lower: Floats
    trace_upper: Floats
    trace_leaves: Integers
    first_limit: Floats
    gap: Floats
    tried: Floats
    refined: Bytes
    too_wide: Integers
    num_masks: Integers
    narrow_limit: Floats
    labels: Integers
    masks: Bytes
    num_variables: Integers
    num_edges: Integers
    constant: Floats
    num_states: Integers
    unary: Floats
    edges: Integers
    pairwise: Floats
    state_submodel: Integers
    num_shifts: Integers
    shift_size: Integers
    values: Floats
    parent: Integers
    submodel: Integers
    state: Integers
    lower: Floats
    upper: Floats
    other: Floats
    is_and: Bytes
    settled: Bytes
    num_clamps: Integers
    clamp_variable: Integers
    clamp_size: Integers
    clamp_states: Integers


_KIND_OF: dict[Any, sealed.Kind] = {Floats: sealed.FLOATS, Integers: sealed.INTEGERS, Bytes: sealed.BYTES}
KINDS = [_KIND_OF[hint] for hint in get_type_hints(Kept).values()]


def kept_of(search: Search) -> Kept:
    """The arrays of a search that is between two brackets."""
    nodes, parents = [search.frontier.root], [-1]
    for number, node in enumerate(nodes):  # grows as it goes
        nodes.extend(node.children)
        parents.extend([number] * len(node.children))
    submodels = list({id(node.submodel): node.submodel for node in nodes}.values())
    number_of = {id(submodel): number for number, submodel in enumerate(submodels)}
    leaves = [node for node in nodes if not node.settled and not node.children]
    submodel_of = {id(leaf.state): number_of[id(leaf.submodel)] for leaf in leaves}
    states = list({id(leaf.state): leaf.state for leaf in leaves if leaf.state is not None}.values())
    place = {id(state): number for number, state in enumerate(states)}
    state_of = {id(leaf): place[id(leaf.state)] for leaf in leaves if leaf.state is not None}
    clamps = [clamp for node in nodes for clamp in node.clamps]
    narrow = [submodel.narrow for submodel in submodels]
    parts = [each for each in narrow if each is not None]
    models = [submodel.model for submodel in submodels[1:]]
    return Kept(
        model=np.frombuffer(digest(search.user_model), dtype=np.uint8),
        simplified=_bytes([search.simplified]),
        slack=_floats([search.slack]),
        trace_seconds=_floats(point.seconds for point in search.trace),
        trace_lower=_floats(point.lower for point in search.trace),
        trace_upper=_floats(point.upper for point in search.trace),
        trace_leaves=_integers(point.num_leaves for point in search.trace),
        first_limit=_floats(submodel.first_limit for submodel in submodels),
        gap=_floats(submodel.gap for submodel in submodels),
        # what has not come to anything yet is tried again
        tried=_floats(0.0 if submodel.narrow is None else submodel.tried for submodel in submodels),
        refined=_bytes(submodel.refined for submodel in submodels),
        too_wide=_integers(submodel.too_wide for submodel in submodels),
        num_masks=_integers(0 if each is None else len(each.masks) for each in narrow),
        narrow_limit=_floats(0.0 if each is None else each.limit for each in narrow),
        labels=_joined(each.labels for each in parts),
        masks=_joined(mask for each in parts for mask in each.masks),
        num_variables=_integers(model.num_variables for model in models),
        num_edges=_integers(model.num_edges for model in models),
        constant=_floats(model.constant for model in models),
        num_states=_joined(model.num_states for model in models),
        unary=_joined(model.unary.flat for model in models),
        edges=_joined(model.edges.ravel() for model in models),
        pairwise=_joined(model.pairwise.flat for model in models),
        state_submodel=_integers(submodel_of[id(state)] for state in states),
        num_shifts=_integers(len(state.shifts) for state in states),
        shift_size=_integers(len(shift) for state in states for shift in state.shifts),
        values=_joined(each for state in states for each in (state.marginals, state.beliefs, *state.shifts)),
        parent=_integers(parents),
        submodel=_integers(number_of[id(node.submodel)] for node in nodes),
        state=_integers(state_of.get(id(node), -1) for node in nodes),
        lower=_floats(node.lower for node in nodes),
        upper=_floats(node.upper for node in nodes),
        other=_floats(node.other for node in nodes),
        is_and=_bytes(node.is_and for node in nodes),
        settled=_bytes(node.settled for node in nodes),
        num_clamps=_integers(len(node.clamps) for node in nodes),
        clamp_variable=_integers(variable for variable, _ in clamps),
        clamp_size=_integers(len(chosen) for _, chosen in clamps),
        clamp_states=_integers(state for _, chosen in clamps for state in chosen),
    )


def digest(model: Model) -> bytes:
    """SHA-256 of all that makes models equal or not."""
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
