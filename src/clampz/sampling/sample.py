"""`sample` and `sample_blocks`: draws, gathered until there are as many as asked for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clampz.display.formatting import counted
from clampz.model import Evidence, Model
from clampz.model.model_checks import check_model
from clampz.numerics import log_sum_exp
from clampz.runtime.budget import Budget, Cancelled, Progress
from clampz.runtime.options import check_whole, knows_its_options
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed
from clampz.runtime.workers import Workers
from clampz.sampling.choice import NO_PIECE, Piece, SamplerChoice, find_way
from clampz.sampling.request import SampleRequest
from clampz.sampling.samples import Samples

# States of a block of samples, where nobody says how many samples it has.
STATES_IN_BLOCK = 2**22
# Of weighted samples, the share that they are worth below which that is said.
LITTLE = 0.01
FEW = 'a few of them carry all the weight: allow more time= or memory=, raise max_table=, or try method="gibbs"'
# How a run ended that has fewer samples than asked for.
ENDINGS = {"time": "time was over", "interrupt": "interrupted", "callback": "stopped by its callback"}
NOTHING = "stopped before there was anything to draw from"


@knows_its_options
def sample(
    model: Model,
    num_samples: int = 1000,
    *,
    evidence: Evidence | None = None,
    method: str = "auto",
    max_table: int | None = None,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[Progress] = None,
) -> Samples:
    """Draw configurations of a model, `p(x) = exp(score(x)) / Z`: exact, weighted, or along Markov chains.

    By default they are exact where elimination fits in memory and time.  Else draws of a proposal, an upper bound by
    mini-buckets, are accepted with probability f / (q e^bound), which makes them exact too.  Where too few would be,
    they are returned with their weights.  `samples.kind` and `samples.reason` say which, and how much of the draws is
    accepted.

    Parameters
    ----------
    model
        What to draw from.
    num_samples
        How many; fewer come back where time is over before, or after Ctrl-C, and `reason` says so.  More than fit in
        memory are had by `sample_blocks`.
    evidence
        `{variable: state}`: the samples are of the others given these.
    method
        "auto"; or "exact" (by elimination, or TooWideError), "rejection", "weighted", or "gibbs": Markov chains that
        draw random trees of variables given the others.  Chains are not exact, however long.
    max_table
        Table entries of a clique at most; as many as memory and time allow if None.
    time, memory, threads
        Seconds at most; bytes, or text such as "2GB" (half of what is free if None); all cores if None.
    rng
        A whole number or a numpy Generator.  The same seed gives the same samples, on any number of threads, and so
        does None.
    progress
        True for a live line; or called now and then with a `Progress`, and may raise StopIteration to stop the run.

    Returns
    -------
    Samples
        Their states, weights, and what they are.

    Raises
    ------
    TooWideError
        With `method="exact"`, where the model does not fit into memory.
    ModelError
        Where no configuration is possible: Z = 0.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.

    Examples
    --------
    >>> from clampz import generators
    >>> samples = sample(generators.grid(5, 5, rng=0), 500, rng=1)
    >>> samples.kind, samples.states.shape
    ('exact', (500, 25))
    >>> sample(Model([[0.0, 0.0]], names=["coin"], state_names=[["heads", "tails"]]), 2, evidence={"coin": "tails"})[1]
    {'coin': 'tails'}
    """
    asked = SampleRequest(model, num_samples, evidence, method, max_table, time, memory, threads, rng, progress)
    return next(_blocks(asked, num_samples))


@knows_its_options
def sample_blocks(
    model: Model,
    num_samples: int | None = None,
    *,
    block_size: int | None = None,
    evidence: Evidence | None = None,
    method: str = "auto",
    max_table: int | None = None,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[Progress] = None,
) -> Iterator[Samples]:
    """Yield the samples of `sample` in blocks of `block_size`, without end if `num_samples` is None.

    Only one block is in memory at a time.  Time counts from the first one on, with what is done between two of them.

    Parameters
    ----------
    model, evidence, method, max_table, time, memory, threads, rng, progress
        As for `sample`.
    num_samples
        How many in all; None for any number, as long as they are asked for.
    block_size
        How many in a block; as many as memory allows if None.

    Returns
    -------
    iterator of Samples
        Blocks, the last one perhaps smaller; together they are what `sample` would return.

    Raises
    ------
    TooWideError, ModelError, OptionError
        As for `sample`.

    Examples
    --------
    >>> from clampz import generators
    >>> sum(len(block) for block in sample_blocks(generators.cycle(5, rng=0), 1000, block_size=300))
    1000
    """
    check_model(model)
    check_whole("num_samples", num_samples, 0, or_none=True)
    check_whole("block_size", block_size, 1, or_none=True)
    size = max(1, STATES_IN_BLOCK // max(1, model.num_variables)) if block_size is None else block_size
    size = size if num_samples is None else min(size, num_samples)
    asked = SampleRequest(model, size, evidence, method, max_table, time, memory, threads, rng, progress)
    return _blocks(asked, math.inf if num_samples is None else num_samples)


def _blocks(asked: SampleRequest, total: float) -> Iterator[Samples]:
    """Yield blocks of samples, at least one; the first that is short of samples is the last."""
    with as_callback(asked.progress, "sampling") as listener, Workers(asked.options.num_threads) as workers:
        budget = Budget(asked.options.time, listener)
        with budget.interruptible():
            try:
                way = find_way(asked, budget, workers)
            except Cancelled:
                way = None
        if way is None:
            yield Samples(
                model=asked.model,
                states=np.empty((0, asked.model.num_variables), dtype=np.int32),
                log_weights=np.empty(0),
                kind="weighted",
                reason=NOTHING,
                num_drawn=0,
                log_z=math.nan,
                stopped_by=budget.stopped_by or "time",
            )
            return
        gathering = _Gathering(asked, way, way.pieces(total, budget, workers), budget)
        while True:
            number = int(min(asked.num_at_once, total))
            with budget.interruptible():
                samples = gathering.next(number)
            total -= number
            yield samples
            if len(samples) < number or total <= 0:
                return


@dataclass(eq=False)
class _Gathering:
    """Takes samples out of pieces: the next ones begin where the last ones ended."""

    asked: SampleRequest
    way: SamplerChoice
    pieces: Iterator[Piece]
    budget: Budget
    piece: Piece = NO_PIECE
    taken: int = 0  # samples of the piece
    counted: int = 0  # draws of the piece

    def next(self, number: int) -> Samples:
        """Gather this many samples, or what there is until the end."""
        states = np.empty((number, self.asked.model.num_variables), dtype=np.int32)
        log_weights, filled, num_drawn = np.empty(number), 0, 0
        sums: list[float] = []
        while filled < number:
            if self.taken == len(self.piece.states) and self.counted == len(self.piece.all_weights):
                piece = next(self.pieces, None)
                if piece is None:
                    break
                self.piece, self.taken, self.counted = piece, 0, 0
            piece, begin = self.piece, self.taken
            end = min(len(piece.states), begin + number - filled)
            states[filled : filled + end - begin] = piece.states[begin:end]
            log_weights[filled : filled + end - begin] = piece.log_weights[begin:end]
            filled += end - begin
            # the draws after the last sample are not counted: how many there are depends on who draws
            last = int(piece.places[end - 1]) + 1 if filled == number else len(piece.all_weights)
            sums.append(log_sum_exp(piece.all_weights[self.counted : last]))
            num_drawn += last - self.counted
            self.taken, self.counted = end, last
            unknown = {"residual": math.nan, "log_z": math.nan}
            self.budget.report("sample", num_drawn, **unknown, num_lanes=number, num_finished=filled)
        chains = self.way.kind == "gibbs"
        log_z = math.nan if chains or not num_drawn else log_sum_exp(np.array(sums)) - math.log(num_drawn)
        samples = Samples(
            model=self.asked.model,
            states=states[:filled],
            log_weights=log_weights[:filled],
            kind=self.way.kind,
            reason=self.way.reason,
            num_drawn=num_drawn,
            log_z=log_z,
            num_chains=self.way.num_chains,
            stopped_by="tol" if filled == number else self.budget.stopped_by or "max_iter",
        )
        return self._with_remarks(samples, number)

    def _with_remarks(self, samples: Samples, number: int) -> Samples:
        """Add to the reason what else there is to say of the samples."""
        remarks = [samples.reason]
        if len(samples) < number:
            ending = ENDINGS.get(samples.stopped_by, "no more could be had")
            remarks.append(f"{ending} after {len(samples):,} of {number:,}, {counted(samples.num_drawn, 'draw')}")
        if samples.kind == "weighted" and len(samples) and samples.effective_size < LITTLE * len(samples):
            remarks.append(FEW)
        return replace(samples, reason="; ".join(remarks))
