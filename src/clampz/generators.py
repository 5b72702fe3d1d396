"""Seeded random models: the paper's families, and its two hand-drawn examples.

Potentials.  By default the models are binary, in the paper's form: theta_i x_i with theta_i ~ U(theta), and W_ij / 2
[x_i = x_j] with W_ij ~ U(weights).  Either may be a number instead of a range, which makes it constant and draws
nothing: `complete(4, theta=0, weights=3.0)` is the uniform symmetric model of the paper's Figure 2.  For more labels
`potentials` chooses between

- "potts": theta_i(0) = 0, theta_i(a) ~ U(theta) for the other states; theta_ij(a, b) = W_ij / 2 [a = b].  With two
  labels this is the binary form.
- "table": theta_i(a) ~ U(theta) and theta_ij(a, b) ~ U(weights) / 2, every entry by itself.

Seeds.  `rng` is an integer, a numpy Generator, or None for a new model each time.  The graph is drawn first, then the
unary potentials in the order of the variables, then the weights in the order of the model's edges.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import OptionError, shown
from clampz.model import Model
from clampz.model.checks import as_edges
from clampz.numerics import Floats, Integers
from clampz.runtime.options import check_option, check_whole, is_number, is_one_of, is_whole, knows_its_options
from clampz.runtime.seeds import Seed, as_generator

__all__ = ["barbell", "complete", "cycle", "erdos_renyi", "from_graph", "grid", "lamp", "regular"]

Range = float | tuple[float, float]
Potentials = Literal["potts", "table"]

THETA: Range = (-2.0, 2.0)
WEIGHTS: Range = (-6.0, 6.0)

# Swaps tried before a random pairing that cannot be mended is thrown away; each succeeds with probability about 1/4 or
# more.
MAX_SWAPS = 1000


class Drawing(TypedDict, total=False):
    """How the potentials are drawn, by what every generator takes."""

    theta: Range
    weights: Range
    labels: int
    potentials: Potentials
    rng: Seed


@knows_its_options
def from_graph(
    n: int,
    edges: ArrayLike,
    *,
    theta: Range = THETA,
    weights: Range = WEIGHTS,
    labels: int = 2,
    potentials: Potentials = "potts",
    names: Sequence[str] | None = None,
    rng: Seed = None,
) -> Model:
    """Random potentials on any graph of n variables; an edge that is listed twice is drawn twice, and the draws add up.

    Parameters
    ----------
    n
        How many variables.
    edges
        (m, 2) pairs of variables.
    theta, weights
        Ranges (low, high), or numbers.
    labels
        States of each variable.
    potentials
        "potts" or "table".
    names
        Of the variables.
    rng
        A seed, a Generator, or None for a new model each time.

    Returns
    -------
    Model
        The same for the same seed.

    Raises
    ------
    OptionError, ModelError
        Where a number is out of range, or an edge joins no two variables.

    Examples
    --------
    >>> from_graph(3, [(0, 1), (1, 2)], theta=0, weights=(0, 2), rng=0)
    Model(3 variables of 2 states, 2 edges, attractive)
    >>> from_graph(3, [(0, 1), (1, 2)], labels=4, potentials="table", rng=0)
    Model(3 variables of 4 states, 2 edges)
    """
    check_whole("n", n, 1)
    check_whole("labels", labels, 2)
    check_option(is_one_of(potentials, ("potts", "table")), "potentials", "'potts' or 'table'", potentials)
    theta_range, weight_range = _as_range(theta, "theta"), _as_range(weights, "weights")
    if potentials == "table" and weight_range[0] == weight_range[1]:
        raise OptionError(
            f"weights: expected a range (low, high) for random tables, found {shown(weights)}: "
            "a constant table couples nothing"
        )
    generator = as_generator(rng)
    pairs = np.sort(as_edges(edges, n), axis=1)
    pairs = pairs[np.argsort(pairs[:, 0] * n + pairs[:, 1], kind="stable")]
    m = len(pairs)
    if potentials == "table":
        unary = _draw(theta_range, (n, labels), generator)
        return Model.from_arrays(unary, pairs, _draw(weight_range, (m, labels, labels), generator) / 2, names=names)
    unary = np.zeros((n, labels))
    unary[:, 1:] = _draw(theta_range, (n, labels - 1), generator)
    tables = np.zeros((m, labels, labels))
    same = np.arange(labels)
    tables[:, same, same] = _draw(weight_range, (m, 1), generator) / 2
    return Model.from_arrays(unary, pairs, tables, names=names)


@knows_its_options
def grid(rows: int, cols: int, *, toroidal: bool = True, **drawing: Unpack[Drawing]) -> Model:
    """A grid, variable `row * cols + col`, toroidal unless told otherwise: then every variable has four neighbours.

    A side of two is not wrapped: both ways around lead to the same neighbour, and two edges between the same variables
    would be one edge of twice the weight.  A side of one has no edges.  So the 2 x 2 torus is a cycle of four, and the
    1 x n torus a cycle of n.

    Parameters
    ----------
    rows, cols
        The two sides.
    toroidal
        Whether it is wrapped around.
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        Of `rows * cols` variables.

    Examples
    --------
    >>> grid(7, 7, weights=(-6, 6), rng=0)
    Model(49 variables of 2 states, 98 edges, mixed)
    """
    check_whole("rows", rows, 1)
    check_whole("cols", cols, 1)
    number = np.arange(rows * cols).reshape(rows, cols)
    pairs = []
    for across in (number, number.T):
        pairs.append(np.stack([across[:, :-1].ravel(), across[:, 1:].ravel()], axis=1))
        if toroidal and across.shape[1] > 2:
            pairs.append(np.stack([across[:, 0], across[:, -1]], axis=1))
    return from_graph(rows * cols, np.concatenate(pairs), **drawing)


@knows_its_options
def erdos_renyi(n: int, degree: float = 4.0, **drawing: Unpack[Drawing]) -> Model:
    """Every edge is there with probability `degree / (n - 1)`, so that variables have `degree` neighbours on average.

    Parameters
    ----------
    n
        How many variables.
    degree
        How many neighbours a variable has on average.
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        Perhaps with variables without neighbours.

    Examples
    --------
    >>> 1300 < erdos_renyi(1000, degree=3.0, rng=0).num_edges < 1700
    True
    """
    check_whole("n", n, 1)
    check_option(
        is_number(degree) and 0 <= degree <= n - 1, "degree", f"an average degree from 0 to n - 1 = {n - 1}", degree
    )
    generator = as_generator(drawing.get("rng"))
    num_pairs = n * (n - 1) // 2
    # As many edges as n (n - 1) / 2 coins would give, then which ones: the same distribution, in time linear in the
    # edges.
    num_edges = generator.binomial(num_pairs, degree / (n - 1)) if n > 1 else 0
    empty = np.empty(0, dtype=np.int64)
    chosen = generator.choice(num_pairs, size=num_edges, replace=False, shuffle=False) if num_edges else empty
    drawing["rng"] = generator  # goes on after the graph
    return from_graph(n, _pairs(chosen, n), **drawing)


@knows_its_options
def regular(n: int, degree: int = 4, **drawing: Unpack[Drawing]) -> Model:
    """Every variable has exactly `degree` neighbours, at random.

    Stubs are paired at random; self-loops and double edges are then swapped away, which leaves the graph uniform up to
    terms that vanish with n.

    Parameters
    ----------
    n
        How many variables.
    degree
        How many neighbours each has; n * degree is even.
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        With n * degree / 2 edges.

    Examples
    --------
    >>> regular(25, 4, rng=0).topology.degrees.tolist() == [4] * 25
    True
    """
    check_whole("n", n, 1)
    check_option(is_whole(degree) and 0 <= degree < n, "degree", f"a whole number from 0 to n - 1 = {n - 1}", degree)
    if n * degree % 2:
        raise OptionError(
            f"degree: expected n * degree to be even, as every edge has two ends, found n = {n} and degree = {degree}"
        )
    generator = as_generator(drawing.get("rng"))
    sparse = 2 * degree <= n - 1
    pairs = None
    while pairs is None:
        pairs = _pair_stubs(n, degree if sparse else n - 1 - degree, generator)
    if not sparse:  # the complement: most swaps fail on a dense graph
        every = _pairs(np.arange(n * (n - 1) // 2), n)
        pairs = every[~np.isin(every @ [n, 1], np.sort(pairs, axis=1) @ [n, 1])]
    drawing["rng"] = generator
    return from_graph(n, pairs, **drawing)


@knows_its_options
def complete(n: int, **drawing: Unpack[Drawing]) -> Model:
    """Join every variable to every other.

    Parameters
    ----------
    n
        How many variables.
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        With n (n - 1) / 2 edges.

    Examples
    --------
    >>> complete(4, theta=0, weights=3.0)
    Model(4 variables of 2 states, 6 edges, attractive)
    """
    check_whole("n", n, 1)
    return from_graph(n, _pairs(np.arange(n * (n - 1) // 2), n), **drawing)


@knows_its_options
def cycle(n: int, **drawing: Unpack[Drawing]) -> Model:
    """n variables in a ring.

    Parameters
    ----------
    n
        How many variables, three or more.
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        With n edges.

    Examples
    --------
    >>> cycle(3, theta=0, weights=-3.0)  # frustrated: three variables cannot all differ
    Model(3 variables of 2 states, 3 edges, mixed)
    """
    check_whole("n", n, 3)
    return from_graph(n, np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1), **drawing)


@knows_its_options
def lamp(**drawing: Unpack[Drawing]) -> Model:
    """The 'lamp' of the paper's Figure 1: X1 to X4 all joined, and X4 - X5 - X6 with X7 to X10 hanging from X6.

    X6 has the most neighbours and lies on no cycle; the core is X1 to X4.

    Parameters
    ----------
    drawing
        How the potentials are drawn: `theta`, `weights`, `labels`, `potentials` and `rng`, as `from_graph` takes them.

    Returns
    -------
    Model
        Of ten variables, named X1 to X10.

    Examples
    --------
    >>> lamp(rng=0).topology.num_core
    4
    """
    edges = [*combinations(range(1, 5), 2), (4, 5), (5, 6), *((6, i) for i in range(7, 11))]
    return from_graph(10, np.array(edges) - 1, names=[f"X{i}" for i in range(1, 11)], **drawing)


@knows_its_options
def barbell(weight: float = 6.0, *, theta: Range = 0.0, rng: Seed = None) -> Model:
    """The paper's Figure 3: X1 to X5 all joined and attractive, a bridge X1 - X6, and the frustrated triangle X6, X7,
    X8.

    Every edge has W = weight but for the repulsive X7 - X8, which has W = -weight.

    Parameters
    ----------
    weight
        Of every edge, but for the sign of one.
    theta
        A range (low, high), or a number: zero as in the paper.
    rng
        Of theta, where that is a range.

    Returns
    -------
    Model
        Of eight variables, named X1 to X8.

    Examples
    --------
    >>> barbell()
    Model(8 variables of 2 states, 14 edges, mixed)
    """
    check_option(is_number(weight) and np.isfinite(weight), "weight", "a finite number", weight)
    edges = np.array([*combinations(range(1, 6), 2), (1, 6), *combinations(range(6, 9), 2)]) - 1
    W = np.full(len(edges), float(weight))
    W[-1] = -weight
    theta_array = _draw(_as_range(theta, "theta"), (8,), as_generator(rng))
    return Model.from_binary(theta_array, W, edges, names=[f"X{i}" for i in range(1, 9)])


def _pair_stubs(n: int, degree: int, rng: np.random.Generator) -> Integers | None:
    """Pair the stubs of a regular graph at random and swap bad pairs away; None if that gets stuck."""
    pairs: Integers = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
    keys = np.sort(pairs, axis=1) @ [n, 1]
    good = np.zeros(len(pairs), dtype=np.bool_)
    good[np.unique(keys, return_index=True)[1]] = True
    good &= pairs[:, 0] != pairs[:, 1]
    taken = set(keys[good].tolist())
    for k in np.flatnonzero(~good).tolist():
        a, b = pairs[k].tolist()
        for r in rng.integers(len(pairs), size=MAX_SWAPS).tolist():
            # a - b, c - d become a - d, c - b: degrees stay as they are
            c, d = pairs[r].tolist()
            new = {min(a, d) * n + max(a, d), min(c, b) * n + max(c, b)}
            if good[r] and a != d and c != b and len(new) == 2 and not new & taken:
                break
        else:
            return None
        taken.remove(min(c, d) * n + max(c, d))
        taken |= new
        pairs[k], pairs[r] = (a, d), (c, b)
        good[k] = True
    return pairs


def _pairs(numbers: Integers, n: int) -> Integers:
    """Return the pairs (i, j), i < j < n, with these numbers in lexicographic order."""
    rows = np.arange(n)
    start = rows * (2 * n - rows - 1) // 2
    i = np.searchsorted(start[: n - 1], numbers, side="right") - 1
    return np.stack([i, numbers - start[i] + i + 1], axis=1)


def _draw(bounds: tuple[float, float], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    low, high = bounds
    return rng.uniform(low, high, shape) if low < high else np.full(shape, low)


def _as_range(value: Range, name: str) -> tuple[float, float]:
    pair: Any = (value, value) if is_number(value) else value
    try:
        low, high = pair
    except (TypeError, ValueError):
        low = high = None
    holds = is_number(low) and is_number(high) and np.isfinite([float(low), float(high)]).all() and low <= high
    check_option(bool(holds), name, "a number, or a range (low, high) of finite numbers with low <= high", value)
    return float(low), float(high)
