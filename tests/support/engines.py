"""The two engines of an exact sum: bucket sweeps, and a tree of contractions."""

from dataclasses import replace

from clampz._kernels.contraction.passes import Factors
from clampz.elimination import plans
from clampz.elimination.contraction import Contraction


def contracted(elimination, memory=2**40):
    """The same sum as a tree of contractions, however small."""
    plan = Contraction.of(Factors(*elimination.scopes), elimination.scopes.tree(elimination.order), memory)
    return replace(elimination, plan=plan, sizes=plans.NO_SIZES)


def swept(elimination):
    return elimination
