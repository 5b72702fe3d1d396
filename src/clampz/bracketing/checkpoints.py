"""A search in a file, to go on with later."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clampz._version import __version__
from clampz.bracketing.bracket import BoundOptions, Point
from clampz.bracketing.search import Search
from clampz.bracketing.tree import Node, Part
from clampz.errors import OptionError
from clampz.model import Model


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A search in a file: parts, and nodes with their parents by number."""

    version: str
    model: Model
    parts: list[Part]
    rows: list[tuple[Any, ...]]
    trace: list[Point]
    num_leaves: int
    slack: float


def save(search: Search, path: Path) -> None:
    """Leave the tree in a file, whole or not at all."""
    nodes, parts = [search.root], {id(search.root.part): search.root.part}
    for node in nodes:  # grows as it goes: parents come before their children
        nodes.extend(node.children)
        parts[id(node.part)] = node.part
    number = {id(node): k for k, node in enumerate(nodes)}
    part_number = {key: k for k, key in enumerate(parts)}
    rows = [
        (
            -1 if node.parent is None else number[id(node.parent)], part_number[id(node.part)], node.clamps, node.lower, node.upper, node.is_and, node.other,
            node.settled, node.state,
        )
        for node in nodes
    ]  # fmt: skip
    kept = Checkpoint(
        version=__version__,
        model=search.user_model,
        parts=list(parts.values()),
        rows=rows,
        trace=search.trace,
        num_leaves=search.num_leaves,
        slack=search.slack,
    )
    beside = path.with_name(f"{path.name}.tmp")
    try:
        beside.write_bytes(pickle.dumps(kept))
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OptionError(f"checkpoint {path}: {error.strerror or error}") from None


def resumed(model: Model, options: BoundOptions, path: Path) -> Search:
    """From a file, if it is there: of the same model and version."""
    search = Search(model, options)
    if not path.exists():
        if not path.parent.is_dir():
            raise OptionError(f"checkpoint {path}: expected a folder that exists")
        return search
    try:
        kept = pickle.loads(path.read_bytes())
    except Exception:
        kept = None
    if not isinstance(kept, Checkpoint):
        raise OptionError(f"checkpoint {path}: expected a file that bound() left, found something else")
    if kept.version != __version__:
        raise OptionError(f"checkpoint {path}: expected one of version {__version__}, found {kept.version}")
    if kept.model != model:
        raise OptionError(f"checkpoint {path}: expected one of this model, {model}, found one of {kept.model}")
    nodes: list[Node] = []
    for parent, part, clamps, lower, upper, is_and, other, settled, state in kept.rows:
        node = Node(nodes[parent] if parent >= 0 else None, kept.parts[part], clamps, lower, upper)
        node.is_and, node.other, node.settled, node.state = is_and, other, settled, state
        if parent >= 0:
            nodes[parent].children.append(node)
        nodes.append(node)
    search.root, search.trace, search.num_leaves, search.num_nodes, search.slack = (
        nodes[0],
        kept.trace,
        kept.num_leaves,
        len(nodes),
        kept.slack,
    )
    search.seconds_before = kept.trace[-1].seconds if kept.trace else 0.0
    for node in nodes:
        if not node.children:
            search.push(node)
    return search
