"""A search in a file, to go on with later."""

import pickle
from dataclasses import dataclass
from pathlib import Path

from clampz._version import __version__
from clampz.bracketing.bracket import Point
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.search import Search
from clampz.bracketing.tree import Node
from clampz.errors import OptionError
from clampz.files import written_whole
from clampz.model import Model


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A search in a file: its nodes, parents before their children, and for each the number of its parent."""

    version: str
    model: Model
    nodes: list[Node]
    parents: list[int]
    trace: list[Point]
    num_leaves: int
    slack: float


def save(search: Search, path: Path) -> None:
    """Leave the tree in a file, whole or not at all."""
    nodes, parents = [search.frontier.root], [-1]
    for number, node in enumerate(nodes):  # grows as it goes
        nodes.extend(node.children)
        parents.extend([number] * len(node.children))
    kept = Checkpoint(
        version=__version__,
        model=search.user_model,
        nodes=nodes,
        parents=parents,
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
    for node, number in zip(kept.nodes[1:], kept.parents[1:], strict=True):
        node.parent = kept.nodes[number]
        node.parent.children.append(node)
    frontier = search.frontier
    frontier.root, frontier.num_nodes, frontier.num_leaves = kept.nodes[0], len(kept.nodes), kept.num_leaves
    search.trace, search.slack = kept.trace, kept.slack
    search.seconds_before = kept.trace[-1].seconds if kept.trace else 0.0
    for node in kept.nodes:
        frontier.push(node)
    return search
