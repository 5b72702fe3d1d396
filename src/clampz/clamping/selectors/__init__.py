"""Selectors: heuristics of the paper, by name, that score which variable to clamp next.

A selector scores the graph of the variables that are left; `choose` takes the highest score.
"""

from clampz.clamping.selectors.entropy import singleton_entropies
from clampz.clamping.selectors.score_table import Scores
from clampz.clamping.selectors.scoring import Choice, Selector, choose, scores, scores_of_all, selectors

__all__ = ["Choice", "Scores", "Selector", "choose", "scores", "scores_of_all", "selectors", "singleton_entropies"]
