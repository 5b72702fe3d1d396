"""Summary of a model's sizes, graph and potentials, before anything is solved."""

import math
from typing import Any

import numpy as np

from clampz.model.conditioning import states_left
from clampz.model.model import Model
from clampz.model.topology import Topology


def describe(model: Model) -> dict[str, Any]:
    """Collect sizes, zeros, facts of the graph in which all variables of a factor are neighbours, and strengths.

    >>> from clampz import generators
    >>> found = describe(generators.grid(3, 3, rng=0))
    >>> found["edges"], found["components"], found["core"], found["kind"]
    (18, 1, 9, 'mixed')
    """
    pairs, strength = model.couplings
    graph = Topology.from_edges(model.num_variables, pairs) if model.factors else model.topology
    finite = strength[strength < math.inf]
    sizes, counts = np.unique(np.diff(model.factors.scope_start), return_counts=True)
    zeros = sum(int(np.isneginf(flat).sum()) for flat in (model.unary.flat, model.pairwise.flat, model.factors.flat))
    return {
        "variables": model.num_variables,
        "fixed": int(np.count_nonzero(states_left(model.unary.flat > -np.inf, model.unary.start) == 1)),
        "labels": [int(model.num_states.min()), int(model.num_states.max())] if model.num_variables else [0, 0],
        "edges": model.num_edges,
        "larger_factors": {
            str(size): int(number) for size, number in zip(sizes.tolist(), counts.tolist(), strict=True)
        },
        "table_entries": model.num_entries,
        "zeros": zeros,
        "components": graph.num_components,
        "largest_component": int(np.bincount(graph.components).max(initial=0)),
        "core": graph.num_core,
        "mean_degree": float(graph.degrees.mean()) if model.num_variables else 0.0,
        "kind": model.kind if model.pair_form is not None else None,
        "strength": [float(np.median(finite)), float(finite.max())] if finite.size else [0.0, 0.0],
    }


def in_words(data: dict[str, Any]) -> dict[str, str]:
    """Format a description for people."""
    unary, (low, high) = data["variables"], data["labels"]
    larger = "".join(f", {number:,} of {size} variables" for size, number in data["larger_factors"].items())
    known = f", {data['fixed']:,} of them known" if data["fixed"] else ""
    typical, most = data["strength"]
    return {
        "variables": f"{unary:,}{known}",
        "labels": str(low) if low == high else f"{low} to {high}",
        "factors": f"{unary:,} unary, {data['edges']:,} edges{larger}; {data['table_entries']:,} table entries",
        "zeros": f"{data['zeros']:,} table entries" if data["zeros"] else "none",
        "components": f"{data['components']:,}, the largest of {data['largest_component']:,} variables",
        "core": f"{data['core']:,} variables on or between cycles; {data['mean_degree']:.1f} neighbours on average",
        "kind": data["kind"] or "neither attractive nor mixed: only pairwise models of two labels without zeros are",
        "strength": f"|W| {typical:.3g} in the middle, {most:.3g} at most",
    }
