"""Which variable to clamp next: the paper's heuristics, by name.  A selector scores what is left of a model's graph;
`choose` takes the highest, and says so where the scores did not decide.

May import: approximations and everything below them, and the weights of branches.
"""

from clampz.clamping.selectors.entropy import singleton_entropies
from clampz.clamping.selectors.registry import Choice, Selector, choose, scores, scores_of_all, selectors
from clampz.clamping.selectors.scores import Scores

__all__ = ["Choice", "Scores", "Selector", "choose", "scores", "scores_of_all", "selectors", "singleton_entropies"]
