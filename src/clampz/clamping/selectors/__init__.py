"""Which variable to clamp next: the paper's heuristics, by name."""

from clampz.clamping.selectors.entropy import singleton_entropies
from clampz.clamping.selectors.registry import Choice, Selector, choose, scores, selectors

__all__ = ["Choice", "Selector", "choose", "scores", "selectors", "singleton_entropies"]
