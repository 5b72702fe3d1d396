"""`bound` and `iter_bounds`: a portfolio of strategies run to its limits, from a checkpoint and to one if asked for."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from clampz.bounding.bracket import Bracket, ContradictionError
from clampz.bounding.checkpoints.checkpoint import REMEDY, resumed, save
from clampz.bounding.options import BoundKeywords, BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import STRATEGIES
from clampz.errors import OptionError
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget
from clampz.runtime.options import check_option, takes_names
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, with_rng
from clampz.runtime.workers import AnyExecutor, Crew


@takes_names
def bound(
    model: Model,
    *,
    evidence: Evidence | None = None,
    executor: AnyExecutor | None = None,
    rng: Seed = None,
    progress: Listener[Bracket] = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | Path | None = None,
    options: BoundOptions | None = None,
    **changes: Unpack[BoundKeywords],
) -> Bracket:
    """Bracket log Z: lower <= log Z <= upper, certified, as narrow as `gap` or as `time` allows.

    Parameters
    ----------
    model
        What to bracket the log Z of.
    evidence
        `{variable: state}`, as `Model.condition` takes it: then Z is that of the evidence.
    executor
        Where bounds are computed: any concurrent.futures.Executor, of threads, processes or a cluster, or a Dask
        Client.  By default threads of this process.
    rng
        A whole number, or a numpy Generator whose next number is taken: the option `seed` by another name.
    progress
        True for a live line; or called with each new bracket, and may raise StopIteration to stop.
    stop
        Asked many times a second whether to stop with what there is.
    checkpoint
        A file to go on from if it is there, and to leave the tree in at the end.  It is plain numbers under a checksum,
        and nothing in it is run; what bounds a file of somebody else's has, its author claims.
    options, changes
        `BoundOptions` whole, or its fields by name.

    Returns
    -------
    Bracket
        The last and narrowest one. Its ends hold however the run ended.

    Raises
    ------
    OptionError
        Where an option is out of range, or the checkpoint is not one of this model, or damaged.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> from clampz import generators
    >>> bound(generators.grid(4, 4, rng=0), gap=1e-6).stopped_by
    'exact'
    """
    last = None
    more: dict[str, Any] = {"executor": executor, "stop": stop, "checkpoint": checkpoint, "options": options}
    with as_callback(progress, "bounding") as listener:
        for last in iter_bounds(model, evidence=evidence, rng=rng, **more, **changes):
            if says_stop(listener, last):
                last = replace(last, stopped_by="callback")
                break
    assert last is not None
    return last


@takes_names
def iter_bounds(
    model: Model,
    *,
    evidence: Evidence | None = None,
    executor: AnyExecutor | None = None,
    rng: Seed = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | Path | None = None,
    options: BoundOptions | None = None,
    **changes: Unpack[BoundKeywords],
) -> Iterator[Bracket]:
    """Yield brackets on log Z, each within the one before: leave the loop when it is narrow enough.

    Parameters
    ----------
    model, evidence, executor, rng, stop, checkpoint, options, changes
        As for `bound`.

    Returns
    -------
    iterator of Bracket
        Narrower and narrower ones; the last is what `bound` would return.

    Raises
    ------
    OptionError, EvidenceError
        As for `bound`.

    Examples
    --------
    >>> from clampz import generators
    >>> for bracket in iter_bounds(generators.grid(4, 4, rng=0)):
    ...     if bracket.gap < 0.5:
    ...         break
    """
    chosen = BoundOptions.chosen(options, with_rng(changes, rng))
    check_option(stop is None or callable(stop), "stop", "None or a function that says whether to stop", stop)
    budget = Budget(chosen.time, stop=stop)
    model = given(model, evidence)
    return _running(model, chosen, executor, budget, None if checkpoint is None else Path(checkpoint))


def _running(
    model: Model,
    options: BoundOptions,
    executor: AnyExecutor | None,
    budget: Budget,
    checkpoint: Path | None,
) -> Iterator[Bracket]:
    orderly = gone_on = False
    try:
        with budget.interruptible(), Crew(executor, options.num_threads) as crew:
            problem = Problem(model, options) if checkpoint is None else resumed(model, options, checkpoint)
            gone_on = bool(problem.trace)
            for bracket in Scheduler(problem, STRATEGIES).run(crew, budget):
                orderly = True  # between two brackets the tree is whole
                yield bracket
                orderly = False
        orderly = True
    except ContradictionError:
        if not gone_on:
            raise
        raise OptionError(f"checkpoint {checkpoint}: expected bounds that hold, found false ones; {REMEDY}") from None
    finally:
        budget.end()
        if checkpoint is not None and orderly:
            save(problem, checkpoint)
