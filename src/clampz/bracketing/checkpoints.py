"""A search in a file, to go on with later."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clampz._version import __version__
from clampz.bracketing.bracket import Point
from clampz.bracketing.narrow import NarrowState
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.search import Search
from clampz.bracketing.tree import Node, Submodel
from clampz.errors import OptionError
from clampz.files import written_whole
from clampz.model import Model


class Row(NamedTuple):
    """A node, with its parent (-1 for none) and its submodel by number."""

    parent: int
    submodel: int
    clamps: tuple[tuple[int, tuple[int, ...]], ...]
    lower: float
    upper: float
    is_and: bool
    other: float
    settled: bool
    state: NarrowState | None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A search in a file; in `rows` parents come before their children."""

    version: str
    model: Model
    submodels: list[Submodel]
    rows: list[Row]
    trace: list[Point]
    num_leaves: int
    slack: float


def save(search: Search, path: Path) -> None:
    """Leave the tree in a file, whole or not at all."""
    nodes = [search.frontier.root]
    submodels: dict[int, tuple[int, Submodel]] = {}
    for node in nodes:  # grows as it goes
        nodes.extend(node.children)
        submodels.setdefault(id(node.submodel), (len(submodels), node.submodel))
    number = {id(node): k for k, node in enumerate(nodes)}
    rows = [
        Row(
            parent=-1 if node.parent is None else number[id(node.parent)],
            submodel=submodels[id(node.submodel)][0],
            clamps=node.clamps,
            lower=node.lower,
            upper=node.upper,
            is_and=node.is_and,
            other=node.other,
            settled=node.settled,
            state=node.state,
        )
        for node in nodes
    ]
    kept = Checkpoint(
        version=__version__,
        model=search.user_model,
        submodels=[submodel for _, submodel in submodels.values()],
        rows=rows,
        trace=search.trace,
        num_leaves=search.frontier.num_leaves,
        slack=search.slack,
    )
    try:
        with written_whole(path) as beside:
            beside.write_bytes(pickle.dumps(kept))
    except OSError as error:
        raise OptionError(f"checkpoint {path}: {error.strerror or error}") from None


def resumed(model: Model, options: BoundOptions, path: Path) -> Search:
    """From a file, if it is there: of the same model and version."""
    search = Search(model, options)
    if not path.exists():
        if not path.parent.is_dir():
            raise OptionError(f"checkpoint {path}: expected a folder that exists")
        return search
    try:
        kept: object = pickle.loads(path.read_bytes())
    except Exception:
        kept = None
    if not isinstance(kept, Checkpoint):
        raise OptionError(f"checkpoint {path}: expected a file that bound() left, found something else")
    if kept.version != __version__:
        raise OptionError(f"checkpoint {path}: expected one of version {__version__}, found {kept.version}")
    if kept.model != model:
        raise OptionError(f"checkpoint {path}: expected one of this model, {model}, found one of {kept.model}")
    nodes: list[Node] = []
    for row in kept.rows:
        parent = nodes[row.parent] if row.parent >= 0 else None
        node = Node(parent, kept.submodels[row.submodel], row.clamps, row.lower, row.upper)
        node.is_and, node.other, node.settled, node.state = row.is_and, row.other, row.settled, row.state
        if parent is not None:
            parent.children.append(node)
        nodes.append(node)
    frontier = search.frontier
    frontier.root, frontier.num_nodes, frontier.num_leaves = nodes[0], len(nodes), kept.num_leaves
    search.trace, search.slack = kept.trace, kept.slack
    search.seconds_before = kept.trace[-1].seconds if kept.trace else 0.0
    for node in nodes:
        frontier.push(node)
    return search
