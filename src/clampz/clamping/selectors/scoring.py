"""Selectors by name, the scores that they give every variable, and the choice of the highest.

A new selector is a function of the remaining graph in a file of its own, and one line in this file.
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.approximations.trw import trw
from clampz.clamping.selectors.cycles import TIE, cycle_scores
from clampz.clamping.selectors.edge_strength import Remaining, m_power, max_w
from clampz.clamping.selectors.entropy import as_entropies, trw_entropies
from clampz.clamping.selectors.score_table import Scores
from clampz.errors import ModelError, OptionError
from clampz.model import Evidence, Model, Variable
from clampz.model.conditioning import given, states_left
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled, Progress
from clampz.runtime.options import check_name, knows_its_options
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, with_rng

TRE = "+TRE"


class Selector(NamedTuple):
    """A way to score variables: the higher, the more is gained by clamping it."""

    name: str
    score: Callable[[Remaining], Floats]
    description: str
    core: bool = True  # whether the graph is stripped to its core first
    signs: bool = False  # whether it needs weights with a sign, which only binary models have
    entropy: bool = False  # whether scores are multiplied by singleton entropies


_PLAIN = (
    Selector("maxW0", max_w, "sum of |W| over the variable's edges", core=False),
    Selector("maxW", max_w, "sum of |W| over the variable's edges in the core"),
    Selector("Mpower", m_power, "closed walks through the variable, weighted by tanh|W/4|"),
    Selector(
        "frustCycles",
        partial(cycle_scores, frustrated_only=True),
        "frustrated cycles through the variable, one per edge outside a maximum spanning tree",
        signs=True,
    ),
    Selector(
        "strongCycles",
        partial(cycle_scores, frustrated_only=False),
        "cycles through the variable, one per edge outside a maximum spanning tree",
        signs=True,
    ),
)
_UNDER_TRW = ", times the variable's entropy under TRW"
_WITH_ENTROPY = [
    each._replace(name=each.name + TRE, description=each.description + _UNDER_TRW, entropy=True) for each in _PLAIN
]
SELECTORS = {selector.name: selector for selector in (*_PLAIN, *_WITH_ENTROPY)}


class Choice(NamedTuple):
    """The variable to clamp, its score, and, where the scores did not decide, what did."""

    variable: int
    score: float
    note: str = ""


def selectors() -> dict[str, str]:
    """Every selector by name, with what it scores.

    Returns
    -------
    dict
        `{name: what it scores}`, in the order in which the paper has them.

    Examples
    --------
    >>> list(selectors())[:5]
    ['maxW0', 'maxW', 'Mpower', 'frustCycles', 'strongCycles']
    >>> selectors()["maxW+TRE"]
    "sum of |W| over the variable's edges in the core, times the variable's entropy under TRW"
    """
    return {name: selector.description for name, selector in SELECTORS.items()}


class ScoresKeywords(TypedDict, total=False):
    """What a call of `scores` takes by name."""

    evidence: Evidence | None
    clamped: Collection[Variable]
    entropy: ArrayLike | None
    time: float
    threads: int | None
    rng: Seed
    progress: Listener[Progress]


Several = list[str] | tuple[str, ...]


@overload
def scores(model: Model, selector: str, **named: Unpack[ScoresKeywords]) -> Floats: ...
@overload
def scores(model: Model, selector: Several | None = None, **named: Unpack[ScoresKeywords]) -> Scores: ...
@knows_its_options
def scores(
    model: Model,
    selector: str | Several | None = None,
    *,
    evidence: Evidence | None = None,
    clamped: Collection[Variable] = (),
    entropy: ArrayLike | None = None,
    time: float = math.inf,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[Progress] = None,
) -> Floats | Scores:
    """Score every variable by heuristics of appendix A of [WD16]; higher is better to clamp.

    Scored is the graph of the variables not yet clamped without edges of W = 0, stripped to its core (except by
    maxW0).  Variables outside it score 0, and so do clamped ones and those with a single possible state.

    Parameters
    ----------
    model
        What to score the variables of.
    selector
        One of `selectors()`, or several; None for all that are defined for the model.
    evidence
        `{variable: state}`, as `Model.condition` takes it; variables that are certain score 0.
    clamped
        Variables clamped before, by index or name.
    entropy
        (n,) singleton entropies for the +TRE selectors; the others do not look at them.  By default those of TRW on the
        whole model.  With clamped variables there is no default: where all branches share a sequence of clamps, pass
        `singleton_entropies(trw(model, evidence=branches))`.
    time, threads, rng, progress
        Limits, chance and the listener of that run of TRW, True for a live line; scores that there was no time for are
        nan.

    Returns
    -------
    numpy.ndarray or Scores
        (n,) in the order of the variables; such an array for each of several selectors.

    Raises
    ------
    ModelError
        Where a selector that looks at cycles is asked about other than binary models with finite potentials.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> from clampz import generators
    >>> lamp = generators.lamp(weights=2.0)
    >>> scores(lamp, "maxW0").tolist()
    [6.0, 6.0, 6.0, 8.0, 4.0, 10.0, 2.0, 2.0, 2.0, 2.0]
    >>> scores(lamp, "maxW").tolist()
    [6.0, 6.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> scores(lamp, ["maxW", "Mpower"])
    Scores(10 variables by maxW, Mpower)
    """
    limits = with_rng({"time": time, "threads": threads}, rng)
    trw.options(None, limits)  # refuses what it does not take
    budget = Budget(time)
    with as_callback(progress, "scoring") as listener, budget.interruptible():
        model = given(model, evidence)
        clamped = model.variable_indices(clamped, "clamped")
        asked = _defined(model, clamped, entropy) if selector is None else selector
        names = list(asked) if isinstance(asked, list | tuple) else [asked]
        for name in names:
            check_defined(model, name)
        is_cancelled = False
        if any(_selector(name).entropy for name in names) and entropy is None and not clamped:
            entropy = trw_entropies(model, progress=listener, **limits | {"time": budget.left()})
            is_cancelled = bool(np.isnan(entropy).any())
        try:
            found = {} if is_cancelled else scores_of_all(model, names, clamped=clamped, entropy=entropy, budget=budget)
        except Cancelled:
            found = {}
        found = found or {name: np.full(model.num_variables, np.nan) for name in names}
        return found[selector] if isinstance(selector, str) else Scores(model, found)


def _defined(model: Model, clamped: Collection[Variable], entropy: ArrayLike | None) -> list[str]:
    """Return the selectors that are defined for a model, with or without clamped variables and entropies."""
    has_entropy, has_signs = entropy is not None or not clamped, model.pair_form is not None
    return [
        name
        for name, selector in SELECTORS.items()
        if (has_entropy or not selector.entropy) and (has_signs or not selector.signs)
    ]


def check_defined(model: Model, name: str) -> None:
    """Refuse a model that a selector is not defined for."""
    if _selector(name).signs and model.pair_form is None:
        raise ModelError(
            "frustCycles and strongCycles are defined for binary models with finite pairwise potentials; this is none. "
            "maxW and Mpower take any"
        )


def scores_of_all(
    model: Model,
    names: Sequence[str],
    *,
    clamped: Collection[Variable] = (),
    entropy: ArrayLike | None = None,
    budget: Budget,
) -> dict[str, Floats]:
    """Return (n,) scores by the name of each selector; the graph is built once, and once more without its core.

    All of them are defined for the model: see `check_defined`. Raises Cancelled where the budget is over.
    """
    chosen = [_selector(name) for name in names]
    free = _free(model, clamped)
    multiplier = np.ones(model.num_variables)
    if with_entropy := [selector for selector in chosen if selector.entropy]:
        if entropy is None and not free[_possible_states(model) > 1].all():
            name = with_entropy[0].name
            raise OptionError(
                f"{name} with clamped variables: expected `entropy`, singleton entropies averaged over the branches "
                f"(singleton_entropies(trw(model, evidence=branches))), found None; {name.removesuffix(TRE)} needs none"
            )
        multiplier = trw_entropies(model) if entropy is None else as_entropies(entropy, model)
    graphs: dict[bool, Remaining] = {}
    plain: dict[str, Floats] = {}
    found = {}
    for selector in chosen:
        budget.check_cancelled()
        name = selector.name.removesuffix(TRE)
        if selector.core not in graphs:
            graphs[selector.core] = Remaining.of(model, free, core=selector.core, budget=budget)
        if name not in plain:
            plain[name] = np.zeros(model.num_variables)
            plain[name][graphs[selector.core].variables] = selector.score(graphs[selector.core])
        found[selector.name] = plain[name] if not selector.entropy else plain[name] * multiplier
    return found


def choose(
    model: Model, values: ArrayLike, *, clamped: Collection[Variable] = (), entropy: ArrayLike | None = None
) -> Choice:
    """Choose the variable with the highest score; of equal ones (to a share of 1e-12) the first.

    Where no variable scores above zero, as on trees, the choice falls back, and `note` says so: on maxW0 (times
    `entropy`, if given), and where that is zero too on the variable with the most possible states, of those on the
    highest entropy.

    >>> from clampz import generators
    >>> model = generators.cycle(5, theta=0, weights=1.0)
    >>> choose(model, scores(model, "maxW"))
    Choice(variable=0, score=2.0, note='')
    >>> choose(model, scores(model, "maxW", clamped=[0]), clamped=[0])
    Choice(variable=2, score=2.0, note='no variable scores above zero; chosen by maxW0')
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (model.num_variables,):
        raise OptionError(
            f"scores: expected a number per variable, shape ({model.num_variables},), found shape {array.shape}"
        )
    if np.isnan(array).any():
        raise OptionError(f"score of variable {int(np.argmax(np.isnan(array)))}: expected a number, found nan")
    open_to = _unclamped(model, clamped)
    if not open_to.any():
        raise OptionError(
            f"clamped: expected at least one variable left to clamp, found all {model.num_variables} clamped"
        )
    weights = None if entropy is None else as_entropies(entropy, model)
    array = np.where(open_to, array, -np.inf)
    if array.max() > 0:
        return _first_of_highest(array)
    by_strength = scores(model, "maxW0", clamped=clamped) * (1.0 if weights is None else weights)
    if by_strength.max() > 0:
        return _first_of_highest(by_strength, "no variable scores above zero; chosen by maxW0")
    states = np.where(open_to, _possible_states(model), -1)
    most = states == states.max()
    if weights is not None:
        return _first_of_highest(
            np.where(most, weights, -1.0),
            "no variable scores above zero, nor by maxW0; chosen by number of states, then entropy",
        )
    return _first_of_highest(
        most.astype(np.float64), "no variable scores above zero, nor by maxW0; chosen by number of states"
    )._replace(score=0.0)


def _first_of_highest(values: Floats, note: str = "") -> Choice:
    variable = int(np.argmax(values >= values.max() * (1 - TIE)))
    return Choice(variable, float(values[variable]), note)


def _selector(name: str) -> Selector:
    check_name("selector", name, SELECTORS)
    return SELECTORS[name]


def _possible_states(model: Model) -> Integers:
    return states_left(model.unary.flat > -np.inf, model.unary.start)


def _unclamped(model: Model, clamped: Collection[Variable]) -> NDArray[np.bool_]:
    mask = np.ones(model.num_variables, dtype=np.bool_)
    mask[model.variable_indices(clamped, "clamped")] = False
    return mask


def _free(model: Model, clamped: Collection[Variable]) -> NDArray[np.bool_]:
    """Return (n,) whether a variable is not clamped and has a choice of states: one state left is a clamp already."""
    return _unclamped(model, clamped) & (_possible_states(model) > 1)
