"""`mode`: the best configuration of a model, with a bound on how much better another could be."""

from clampz.display.formatting import counted
from clampz.errors import TooWideError
from clampz.map_inference.components import Limits
from clampz.map_inference.problem import MapProblem
from clampz.map_inference.results import Mode, ModeTrace
from clampz.map_inference.strategies import STRATEGIES
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget
from clampz.runtime.options import (
    Options,
    bytes_in_words,
    check_option,
    check_whole,
    is_number,
    knows_its_options,
    memory_allowed,
)
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, as_generator
from clampz.runtime.workers import Crew

# Seconds where the caller sets no limit.
DEFAULT_TIME = 10.0
# Nats between the ends that are as good as none.
GAP = 1e-9
# Bytes that scores take for each table of a model, and that nobody counts.
BYTES_PER_TABLE, SPARE_BYTES = 64, 50_000_000


@knows_its_options
def mode(
    model: Model,
    *,
    evidence: Evidence | None = None,
    num_best: int = 1,
    gap: float = GAP,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[ModeTrace] = None,
) -> Mode:
    """Find the configuration of largest score, or the best that time allows, and bound how much better another is.

    Max-elimination where the model is narrow enough.  Else mini-buckets bound the largest score from above, local
    search and the dives of a branch and bound find configurations from below, and the search closes the gap.

    Parameters
    ----------
    model
        What to find the best configuration of.
    evidence
        `{variable: state}`.
    num_best
        How many configurations, the best ones.
    gap
        In nats: a configuration that is better by no more is not looked for.
    time
        Seconds at most; None for 10.
    memory
        Bytes, or text such as "2GB"; None for half of what is free.
    threads
        Threads to use; None for all cores.  No result depends on it.
    rng
        A seed or a Generator; the same seed gives the same result, unless time ends it.
    progress
        True for a live line; or called with each `ModeTrace`, and StopIteration from it ends the run with what there
        is.

    Returns
    -------
    Mode
        The best configurations found, and what no configuration exceeds.

    Raises
    ------
    TooWideError
        Where not even the least answer fits into the memory given.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> found = mode(Model.from_binary([0.5, -1.0], [3.0], [(0, 1)], names=["a", "b"]))
    >>> found.configuration, found.score, found.is_optimal
    ({'a': 0, 'b': 0}, 1.5, True)
    """
    check_whole("num_best", num_best, 1)
    check_option(is_number(gap) and gap >= 0, "gap", "a number of nats >= 0", gap)
    options = Options(time=DEFAULT_TIME if time is None else time, threads=threads)
    num_bytes = memory_allowed(memory)
    seed = int(as_generator(0 if rng is None else rng).integers(1, 2**31))
    before, model = model, given(model, evidence)
    _check_memory(model, num_best, num_bytes)
    unfolded = None if evidence is None else before.condition(before.findings(evidence).likelihoods)
    budget, limits = Budget(options.time), Limits(gap, num_best, num_bytes, seed)
    with budget.interruptible(), as_callback(progress, "maximising") as listener:
        return maximise(MapProblem(model, limits, budget, listener, unfolded), options.num_threads)


def best_found(model: Model, num_bytes: float, seed: int, budget: Budget) -> Mode:
    """Return what `mode` finds within a budget and memory, on one thread.

    TooWideError where these do not suffice for any answer.
    """
    _check_memory(model, 1, int(num_bytes))
    return maximise(MapProblem(model, Limits(GAP, 1, num_bytes, seed), budget), 1)


def maximise(problem: MapProblem, num_threads: int) -> Mode:
    """Work to the end, or as far as the budget allows, and return the best found."""
    try:
        with Crew(None, num_threads) as crew:
            for _ in Scheduler(problem, STRATEGIES).run(crew, problem.budget):
                problem.tell()
        return problem.mode()
    finally:
        problem.budget.end()


def _check_memory(model: Model, num_best: int, num_bytes: int) -> None:
    """Refuse what even the least answer would take too much for."""
    num_tables = model.num_variables + model.num_edges + len(model.factors)
    least = BYTES_PER_TABLE * num_tables + 8 * num_best * (model.num_variables + 8)
    if least > max(num_bytes, SPARE_BYTES):
        several = f"the best {num_best:,} configurations" if num_best > 1 else "the best configuration"
        raise TooWideError(
            f"{several} of {counted(model.num_variables, 'variable')} need at least {bytes_in_words(least)}, and "
            f"{bytes_in_words(num_bytes)} are allowed: {'lower num_best=, or ' if num_best > 1 else ''}allow more with "
            "memory=",
            width=0,
            num_bytes=least,
        )
