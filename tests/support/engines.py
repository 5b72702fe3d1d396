"""The two kinds of an exact sum, bucket sweeps and trees of contractions; and plans as everybody asks for them."""

import numpy as np

from clampz.exact_inference import tree_search
from clampz.exact_inference.contraction_trees import TABLE_SHARE, ContractionTree
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.plans import plan_exact
from clampz.exact_inference.scopes import NO_LIMIT, Restriction
from clampz.exact_inference.sums import lay_out
from clampz.runtime.budget import Budget


def contracted(tree, memory=2**40):
    """The same sum as a tree of contractions, however small."""
    log_states = np.log2(tree.scopes.num_states)
    found, seconds = tree_search.best_tree(tree.scopes.tree(tree.order), log_states, TABLE_SHARE * memory / 8, None)
    own = {"restriction": tree.restriction, "order": tree.order, "width": tree.width}
    return ContractionTree(**own, tree=found, seconds=seconds, memory=memory)


def swept(tree):
    return tree


def planned(batch, memory=NO_LIMIT, *, room=None, budget=None, **options):
    """The plan of an exact sum in so many bytes, presolve having `room` for itself."""
    return plan_exact(batch, ExactOptions(memory=room, **options), budget or Budget(), memory=memory)


def laid_out(scopes, *args, **options):
    """A sum over all states of these factors."""
    return lay_out(Restriction.none(scopes), *args, **options)
