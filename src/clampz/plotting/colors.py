"""Colour scales of variables, shaded by a marginal, a score, or a state."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.clamping.selectors import scores as selector_scores
from clampz.clamping.selectors.entropy import trw_entropies
from clampz.errors import OptionError
from clampz.model import Evidence, Model
from clampz.numerics import Floats
from clampz.plotting.style import FAINT, INK
from clampz.solving.solution import Found, Solution

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

# Characters of the names of all states, where they are written.
LONGEST_STATES = 40


class ColorScale(NamedTuple):
    """A number for each variable (nan: unknown), the ends of the scale, its colours, and its label."""

    values: Floats
    limits: tuple[float, float]
    colours: "Colormap"
    label: str

    @classmethod
    def of(
        cls,
        model: Model,
        marginals: Found | Solution | None,
        state: int,
        scores: ArrayLike | str | None,
        configuration: Evidence | ArrayLike | None,
        clamped: list[int],
    ) -> "ColorScale | None":
        """Return the scale that the arguments of `plot_model` ask for, checked; None where they ask for none."""
        if sum(asked is not None for asked in (marginals, scores, configuration)) > 1:
            raise OptionError("expected one of marginals=, scores= and configuration=: variables have one shade")
        if configuration is not None:
            return cls.of_states(model, model.as_configuration(configuration))
        if marginals is not None:
            return cls(_marginals(model, marginals, state), (0.0, 1.0), shade_map(), f"P(x = {_state(model, state)})")
        if scores is None:
            return None
        values = _scores(model, scores, clamped)
        return cls(values, _limits(values), score_map(), scores if isinstance(scores, str) else "score")

    @classmethod
    def of_states(cls, model: Model, states: NDArray[np.integer[Any]]) -> "ColorScale":
        """Return a scale for a state of each variable, with as many steps as there are states."""
        num_states = int(model.num_states.max(initial=2))
        names = {known for known in model.state_names or () if len(known) == num_states}
        said = ", ".join(f"{a} {name}" for a, name in enumerate(names.pop())) if len(names) == 1 else ""
        label = f"state ({said})" if 0 < len(said) <= LONGEST_STATES else "state"
        return cls(states.astype(np.float64), (-0.5, num_states - 0.5), shade_map().resampled(num_states), label)


def color_map(colours: Any, unknown: str = "white") -> "Colormap":
    """Return the scale that runs evenly through colours, with one more for unknown values."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("clampz", colours).with_extremes(bad=unknown)


def shade_map() -> "Colormap":
    """Return the colours of marginals and states: white to ink."""
    return color_map(["white", INK], FAINT)


def score_map() -> "Colormap":
    """Return the colours of scores: white to dark, in a hue that no edge has."""
    return color_map(["white", "#f3c065", "#ad6b1c", "#3d1f06"])


def _marginals(model: Model, marginals: Found | Solution, state: int) -> Floats:
    """Return (n,) the marginal of a state, 0 for variables that do not have it."""
    if len(marginals.marginals) != model.num_variables:
        raise OptionError(
            f"marginals: expected an estimate of this model of {model.num_variables} variables, "
            f"found one of {len(marginals.marginals)}"
        )
    return np.array([float(p[state]) if state < len(p) else 0.0 for p in marginals.marginals])


def _state(model: Model, state: int) -> str:
    """Return the name of a state, if all variables that have it call it so, and else its number."""
    names = {known[state] for known in model.state_names or () if state < len(known)}
    return names.pop() if len(names) == 1 else str(state)


def _scores(model: Model, scores: ArrayLike | str, clamped: list[int]) -> Floats:
    """Return (n,) the caller's scores, checked, or those of a selector on the graph that the clamps leave."""
    if isinstance(scores, str):
        entropy = trw_entropies(model, clamped) if scores.endswith("+TRE") else None
        return selector_scores(model, scores, clamped=clamped, entropy=entropy)
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        expected = "a number for each variable or the name of a selector"
        raise OptionError(f"scores: expected {expected}, found {scores!r:.80}") from None
    if array.shape != (model.num_variables,) or not np.isfinite(array).all():
        raise OptionError(
            f"scores: expected {model.num_variables} finite numbers, one for each variable, found {array!r:.80}"
        )
    return array


def _limits(values: Floats) -> tuple[float, float]:
    """Return the ends of a scale for values: from 0, or from the lowest if that is less."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    return low, high if high > low else low + 1.0
