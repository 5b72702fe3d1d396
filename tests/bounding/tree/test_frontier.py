"""The leaves that wait, and what is let go of."""

import numpy as np
from random_models import frustrated

import clampz as cz
from clampz.bounding.tree.branch_and_bound import BranchAndBound
from clampz.bounding.tree.frontier import bytes_needed
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew


def test_memory_prunes_the_frontier_and_loses_nothing():
    model = frustrated(5, 12)
    needed = 40 * (len(model.unary.flat) + len(model.pairwise.flat))
    bracket = cz.bound(model, gap=0.0, exact=False, leaves=60, time=20, memory=needed + 40_000)
    assert bracket.lower <= cz.exact(model).log_z <= bracket.upper
    assert (np.diff([p.lower for p in bracket.trace]) >= 0).all()


def test_a_branch_is_cut_out_only_where_there_is_memory_for_a_model_of_its_own():
    model = frustrated(5, 12)
    for memory, cut in (("10MB", True), (bytes_needed(model), False)):
        search = BranchAndBound(
            model, cz.options.BoundOptions(exact=False, gap=0.0, leaves=60, time=20.0, memory=memory, max_table=4)
        )
        with Crew(None, 1) as crew:
            *_, bracket = search.run(crew, Budget(20.0))
        nodes, submodels = [search.frontier.root], set()
        while nodes:
            node = nodes.pop()
            nodes += node.children
            submodels.add(id(node.submodel))
        assert (len(submodels) > 1) is cut
        assert bracket.lower <= cz.exact(model).log_z <= bracket.upper


def test_where_there_is_memory_for_no_bound_nothing_is_clamped():
    model = cz.generators.grid(60, 60, rng=0)
    bracket = cz.bound(model, time=20.0, memory=2 * bytes_needed(model))
    assert bracket.stopped_by == "memory" and bracket.num_leaves == 1
    assert -np.inf < bracket.lower < bracket.upper < np.inf
    assert "memory" in bracket.why_no_estimate
