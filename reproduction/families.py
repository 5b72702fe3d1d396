"""Families of models: the 44 of the paper, some of more labels on the same graphs, and the user's own files.

Each run is reproducible from the family's name and its number.  All have theta ~ U[-2, 2].  Grids are toroidal; the
random graphs have 4 neighbours per variable, on average or exactly.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import clampz as cz
from clampz.errors import OptionError
from reproduction.tools import unknown_name

Potentials = Literal["potts", "table"]
Graph = Literal["grid", "er", "regular", "complete", "file"]
GRAPHS = ("grid", "er", "regular", "complete")

THETA = (-2.0, 2.0)
WEIGHTS = ((0.0, 2.0), (0.0, 6.0), (-6.0, 6.0), (-12.0, 12.0))
SIZES: dict[Graph, tuple[int, ...]] = {
    "grid": (25, 49, 81),
    "er": (25, 49, 81),
    "regular": (25, 49, 81),
    "complete": (10, 15),
}
DEGREE = 4


@dataclass(frozen=True, order=True)
class Family:
    """Name a kind of graph, its number of variables, the range of W, and how many labels have which potentials.

    >>> family = Family("grid", 49, (-6.0, 6.0))
    >>> family.name, family.title
    ('grid49[-6,6]', '7x7 grid, [-6,6]')
    >>> family.model(0)
    Model(49 variables of 2 states, 98 edges, mixed)
    >>> Family("er", 25, (0.0, 6.0), 3).name
    'er25[0,6]potts3'
    """

    graph: Graph
    size: int
    weights: tuple[float, float]
    labels: int = 2
    potentials: Potentials = "potts"

    @property
    def name(self) -> str:
        return f"{self.graph}{self.size}{self._range}{f'{self.potentials}{self.labels}' if self.labels > 2 else ''}"

    @property
    def title(self) -> str:
        """Return the name that figures have for it."""
        side = math.isqrt(self.size)
        kind = {
            "grid": f"{side}x{side} grid",
            "er": f"random {self.size}",
            "regular": f"{DEGREE}-regular {self.size}",
            "complete": f"K{self.size}",
        }
        more = f", {self.labels} labels{'' if self.potentials == 'potts' else ', tables'}" if self.labels > 2 else ""
        return f"{kind[self.graph]}, {self._range}{more}"

    @property
    def mixed(self) -> bool:
        """Tell whether weights have both signs, or more labels than two leave Bethe without a bound all the same."""
        return self.weights[0] < 0 or self.labels > 2

    @property
    def _range(self) -> str:
        return "[{:g},{:g}]".format(*self.weights)

    def seed(self, run: int) -> int:
        """Return the seed of a run: the same on every machine, and unlike that of any other run of any family."""
        return int.from_bytes(hashlib.sha256(f"clampz paper {self.name} {run}".encode()).digest()[:6], "big")

    def model(self, run: int) -> cz.Model:
        """Draw the model of a run."""
        drawing: dict[str, Any] = {
            **{"theta": THETA, "weights": self.weights, "rng": self.seed(run)},
            **{"labels": self.labels, "potentials": self.potentials},
        }
        if self.graph == "grid":
            side = math.isqrt(self.size)
            return cz.generators.grid(side, side, **drawing)
        if self.graph == "er":
            return cz.generators.erdos_renyi(self.size, DEGREE, **drawing)
        if self.graph == "regular":
            return cz.generators.regular(self.size, DEGREE, **drawing)
        return cz.generators.complete(self.size, **drawing)


@dataclass(frozen=True, order=True)
class FromFile(Family):
    """Take a model of the user's as a family of one run, by the name of its file; Bethe's errors count without their
    sign."""

    path: str = ""

    @property
    def name(self) -> str:
        return self.path

    @property
    def title(self) -> str:
        return Path(self.path).name

    def model(self, run: int) -> cz.Model:
        return cz.read(self.path)


FAMILIES = tuple(
    Family(graph, size, weights) for graph, sizes in SIZES.items() for size in sizes for weights in WEIGHTS
)
# Beyond the paper: more labels on the smallest graphs, whose edges want them alike, alike or not, or have any tables.
KINDS: tuple[tuple[float, Potentials], ...] = ((0.0, "potts"), (-6.0, "potts"), (-6.0, "table"))
LABELLED = tuple(
    Family(graph, SIZES[graph][0], (least, 6.0), labels, potentials)
    for labels in (3, 5)
    for graph in ("grid", "complete")
    for least, potentials in KINDS
)
EVERY = (*FAMILIES, *LABELLED)
_BY_NAME = {family.name: family for family in EVERY}


@cache
def family_named(name: str) -> Family:
    """Return the family of this name, or the model in the file of this name.

    >>> family_named("complete15[-12,12]")
    Family(graph='complete', size=15, weights=(-12.0, 12.0), labels=2, potentials='potts')
    """
    if name not in _BY_NAME and "." in Path(name).name:  # no other family has a dot in its name
        return FromFile("file", 0, (-math.inf, math.inf), path=name)
    if name not in _BY_NAME:
        raise unknown_name("family", name, _BY_NAME)
    return _BY_NAME[name]


def families(graph: str | None = None, size: int | None = None, weights: Sequence[float] | None = None) -> list[Family]:
    """Return all families, or those of one kind of graph, one size, one range of weights; `graph` may also be a
    family's whole name.

    >>> [family.name for family in families("complete", weights=(0, 2))]
    ['complete10[0,2]', 'complete15[0,2]']
    """
    if graph is not None and graph not in GRAPHS:
        if graph not in _BY_NAME:
            raise unknown_name("family", graph, [*GRAPHS, *_BY_NAME])
        found = [_BY_NAME[graph]]
    else:
        found = [family for family in EVERY if graph in (None, family.graph)]
    sizes, ranges = sorted({family.size for family in found}), list(dict.fromkeys(family.weights for family in found))
    if size is not None and size not in sizes:
        raise OptionError(
            f"size: expected one of {', '.join(map(str, sizes))}{f' for {graph}' if graph else ''}, found {size!r}"
        )
    if weights is not None and tuple(map(float, weights)) not in ranges:
        known = "  ".join("{:g},{:g}".format(*pair) for pair in ranges)
        raise OptionError(f"weights: expected one of {known}, found {','.join(f'{w:g}' for w in weights)}")
    return [f for f in found if size in (None, f.size) and (weights is None or f.weights == tuple(map(float, weights)))]
