"""Anytime bounds: a bracket on log Z that tightens while it runs, and holds whenever it is stopped.

An AND/OR tree of clamps and components (`tree`) is searched best first (`search`); leaves are bounded from narrow
parts, or summed exactly (`leaves`).  Every bound that is ever computed holds, so the root's can only tighten.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from clampz.bracketing import checkpoints
from clampz.bracketing.bracket import BoundOptions, Bracket, Point
from clampz.bracketing.search import Search
from clampz.model import Model
from clampz.options import Options
from clampz.watch import Watch

__all__ = ["BoundOptions", "Bracket", "Point", "bound", "bounds"]


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
    search = checkpoints.resumed(model, chosen, Path(checkpoint)) if checkpoint is not None else Search(model, chosen)
    return _running(search, executor, stop, None if checkpoint is None else Path(checkpoint))


def _running(
    search: Search, executor: Executor | None, stop: Callable[[], bool] | None, checkpoint: Path | None
) -> Iterator[Bracket]:
    threads = Options(threads=search.options.threads).num_threads
    own = ThreadPoolExecutor(threads) if executor is None else None
    watch = Watch(search.options.time)
    orderly = False
    try:
        with watch.interruptible():
            for bracket in search.run(executor or own, watch, threads, stop):  # type: ignore[arg-type]
                orderly = True  # between two brackets the tree is whole
                yield bracket
                orderly = False
        orderly = True
    finally:
        search.cancelled = True
        if own is not None:
            own.shutdown(wait=False, cancel_futures=True)
        if checkpoint is not None and orderly:
            checkpoints.save(search, checkpoint)
