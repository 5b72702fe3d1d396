"""Trees of contractions that grow, against what is known of any tree: each variable is summed once, and costs are those
of a tree that was made at once."""

import numpy as np
import pytest
from engines import laid_out

import clampz as cz
from clampz._kernels.contraction import insertion as kernels
from clampz._kernels.contraction import tree as trees
from clampz.exact_inference import insertion
from clampz.exact_inference.scopes import Scopes
from clampz.exact_inference.sums import sum_out
from clampz.exact_inference.trees import Workspace
from clampz.model.tables import offsets
from clampz.runtime.budget import NEVER

CLOSE = 1e-9


def with_tables(scopes, more):
    """The same with further tables."""
    sizes = [int(np.prod(scopes.num_states[list(scope)])) for scope in more]
    return Scopes(
        scopes.num_states,
        np.concatenate([scopes.start, scopes.start[-1] + np.cumsum([len(scope) for scope in more])]),
        np.concatenate([scopes.variables, np.array([v for scope in more for v in scope], dtype=np.int64)]),
        np.concatenate([scopes.table_start, scopes.table_start[-1] + np.cumsum(sizes)]),
    )


def drawn(seed):
    """A model, its plan, and random scopes of up to four of its variables."""
    rng = np.random.default_rng(seed)
    model = cz.generators.erdos_renyi(9, float(rng.choice([0.5, 2.0])), labels=int(rng.integers(2, 4)), rng=seed)
    scopes = Scopes.of(model)
    more = [rng.permutation(9)[: rng.integers(1, 5)].tolist() for _ in range(6)]
    return model, laid_out(scopes), with_tables(scopes, more)


def grown(base, whole, **options):
    first = base.scopes.num_factors
    wanted = np.arange(whole.num_factors) >= first
    none = np.zeros(whole.num_factors + 1, dtype=np.int64)
    return insertion.insert_tables(base, whole, none, none[:0], wanted, None, **options)


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_is_the_same_and_has_the_beliefs_of_what_came(seed):
    model, base, whole = drawn(seed)
    (found, there), first = grown(base, whole), base.scopes.num_factors
    assert there.tolist()[:first] == list(range(first)) and len(there) > first
    scopes = found.scopes
    values = np.concatenate([model.unary.flat, model.pairwise.flat])
    values = np.concatenate([values, np.zeros(scopes.table_start[-1] - len(values))])
    workspace, marginals = Workspace.of(found), np.empty(len(model.unary.flat))
    exact = cz.exact(model)
    log_z = sum_out(found, values, workspace, marginals).log_z + model.constant
    assert log_z == pytest.approx(exact.log_z, abs=CLOSE)
    assert np.allclose(marginals, exact.marginals.flat, atol=CLOSE)
    for f in range(first, scopes.num_factors):
        variables = scopes.variables[scopes.start[f] : scopes.start[f + 1]].tolist()
        table = workspace.beliefs[scopes.table_start[f] : scopes.table_start[f + 1]]
        assert np.allclose(table, exact.joint(variables).ravel(), atol=CLOSE)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.checked
def test_costs_along_the_way_are_those_of_the_tree(seed):
    """What tables were said to add is what the tree that has them takes more: none is let in for more than allowed."""
    _, base, whole = drawn(seed)
    tree, log_states, first = base.contractions, np.log2(whole.num_states), base.scopes.num_factors
    before = trees.measure(tree, log_states, np.inf)[1].sum()
    wanted = np.arange(whole.num_factors) >= first
    needs = np.zeros(0, dtype=np.int64)
    for allowed in (0.0, 2e-6, 5e-6, 1e-3):
        args = whole.start, whole.variables, first, offsets(0 * whole.start[1:]), needs, wanted, log_states
        more, there = kernels.grow(tree, *args, allowed, 1e9, False, NEVER)
        took = trees.measure(more, log_states, np.inf)[1].sum() - before
        roots = np.count_nonzero(tree.parent < 0) - 1  # joined into one
        came = len(there) - first
        assert took <= came * allowed + roots * trees.SECONDS_PER_STEP * 1.01
        assert came == 0 if allowed == 0.0 else came == 6 or allowed < 1e-3
