"""`bound` and `bounds`: a search run to its limits, and left in a file to go on with later if asked for."""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clampz._version import __version__
from clampz.bracketing.bracket import Bracket, Point
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.search import Search
from clampz.bracketing.tree import Node
from clampz.errors import OptionError
from clampz.files import written_whole
from clampz.model import Model
from clampz.watch import Watch
from clampz.workers import Crew


def bound(
    model: Model,
    *,
    executor: Executor | None = None,
    progress: Callable[[Bracket], object] | None = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | Path | None = None,
    options: BoundOptions | None = None,
    **changes: Any,
) -> Bracket:
    """Bracket log Z: lower <= log Z <= upper, certified, as narrow as `gap` or as `time` allows.

    Parameters
    ----------
    executor
        Where leaves are solved: any concurrent.futures.Executor, of threads, processes or a cluster.  By default
        threads of this process.
    progress
        Called with each new bracket; it may raise StopIteration to stop.
    stop
        Asked many times a second whether to stop with what there is.
    checkpoint
        A file to go on from if it is there, and to leave the tree in at the end.  It is a pickle: go on only from files
        of your own.
    options, changes
        See `BoundOptions`.

    >>> from clampz import generators
    >>> bound(generators.grid(4, 4, rng=0), gap=1e-6).stopped_by
    'exact'
    """
    last = None
    for last in bounds(model, executor=executor, stop=stop, checkpoint=checkpoint, options=options, **changes):
        if progress is not None:
            try:
                progress(last)
            except StopIteration:
                last = replace(last, stopped_by="callback")
                break
    assert last is not None
    return last


def bounds(
    model: Model,
    *,
    executor: Executor | None = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | Path | None = None,
    options: BoundOptions | None = None,
    **changes: Any,
) -> Iterator[Bracket]:
    """Brackets on log Z, each within the one before: leave the loop when it is narrow enough.  See `bound`.

    >>> from clampz import generators
    >>> for bracket in bounds(generators.grid(4, 4, rng=0)):
    ...     if bracket.gap < 0.5:
    ...         break
    """
    chosen = (options or BoundOptions()).with_changes(changes)
    return _running(model, chosen, executor, stop, None if checkpoint is None else Path(checkpoint))


def _running(
    model: Model,
    options: BoundOptions,
    executor: Executor | None,
    stop: Callable[[], bool] | None,
    checkpoint: Path | None,
) -> Iterator[Bracket]:
    watch = Watch(options.time, stop=stop)
    orderly = False
    try:
        with watch.interruptible(), Crew(executor, options.num_threads) as crew:
            search = Search(model, options) if checkpoint is None else _resumed(model, options, checkpoint)
            for bracket in search.run(crew, watch):
                orderly = True  # between two brackets the tree is whole
                yield bracket
                orderly = False
        orderly = True
    finally:
        watch.stopped_by = watch.stopped_by or "callback"  # workers stop too
        if checkpoint is not None and orderly:
            _save(search, checkpoint)


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


def _save(search: Search, path: Path) -> None:
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


def _resumed(model: Model, options: BoundOptions, path: Path) -> Search:
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
