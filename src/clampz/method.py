"""Method: the one signature that exact, mean field, Bethe, TRW and mini-buckets share.

Each of them is a function of a batch; `approximation` makes a `Method` of it, which users call on a model or a batch.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypedDict, TypeVar, overload

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import OptionError
from clampz.model import Evidence, Model
from clampz.model.batch import Batch
from clampz.model.evidence import several_sets
from clampz.model.lane_memory import bytes_of_lanes, is_small
from clampz.model.merged_runs import GroupedRuns, merge_runs
from clampz.model.model_checks import check_model
from clampz.model.pairwise_equivalent import Equivalent, equivalent_start
from clampz.model.results import SOLVED_BY, EndState, Estimate, Estimates, stopped_estimates
from clampz.model.tables import take_lanes
from clampz.model.warm_starts import Start, start_marginals
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import GRACE, UNLIMITED, Budget, Cancelled, Progress
from clampz.runtime.options import Options, as_bytes
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, with_rng

OptionsT = TypeVar("OptionsT", bound=Options)
MethodT = TypeVar("MethodT", bound="Method[Any]")
# Evidence of one lane, or of several; one inverse temperature, or several.
OneSet = Evidence | None
AnySets = OneSet | Sequence[Evidence]
OneBeta = float | None
AnyBeta = float | Sequence[float] | Floats | None


@dataclass(frozen=True, eq=False)
class ForestWeights:
    """TRW's edge weights (m, 1) or (m, B) from an earlier run: mixtures of spanning forests, which need no check.
    Restricted to the edges of the variables that a lane leaves free they stay such mixtures, which is what Theorem 2 of
    [WD16] is about. `optimize`: they are where the optimization begins."""

    rho: Floats
    optimize: bool = False

    @classmethod
    def of(cls, state: EndState, optimize: bool = False) -> "ForestWeights | None":
        """Take the weights that a method ended with, if it has any."""
        return None if state.rho is None else cls(state.rho, optimize)

    def take(self, lanes: Integers) -> "ForestWeights":
        """Select lanes."""
        return self if self.rho.shape[1] == 1 else replace(self, rho=take_lanes(self.rho, lanes))


class CallKeywords(TypedDict, total=False):
    """What a call of any method takes by name, beside evidence, beta and options."""

    start: Start | None
    rng: Seed
    progress: Listener[Progress]


class Method(Generic[OptionsT]):
    """A method from models to estimates.

    Call it with a `Model` for an `Estimate`, or with a `Batch` (or a list of evidence sets) for `Estimates`, one per
    lane.

    Parameters
    ----------
    model
        A Model or a Batch.
    evidence
        `{variable: state}`, as `Model.condition` takes it, or a list of such sets (a frame of pandas, or an array, has
        one in each row): then all of them are solved as one batch.
    beta
        Inverse temperatures >= 0 that the whole score is multiplied by, hard zeros staying what they are: one, or
        several, which make a lane each, and with a list of evidence sets one for each of these.  The result has
        `energy` (minus the mean score), `entropy` and `heat_capacity` too.
    start
        Where to start from, one per lane or one for all: an earlier estimate of the same graph, by whatever method, or
        marginals, as an array with a row per state of each variable in turn.
    rng
        A whole number, or a numpy Generator whose next number is taken: the option `seed` by another name.  The result
        is the same every time without it, and a method without chance does not look at it.
    progress
        True for a live line that says how far it is; or called now and then with a `Progress`, and may raise
        StopIteration to stop the run.
    options
        The method's options, whole; or single ones, by name:

    Returns
    -------
    Estimate or Estimates
        Estimates, with a lane for each, where a batch, a list of evidence sets or several inverse temperatures are
        given.

    Raises
    ------
    OptionError, EvidenceError
        Where an option is unknown or out of range, or evidence names a variable or a state that the model does not
        have.
    TooWideError
        By exact and mini_buckets, where the model does not fit into memory.
    """

    def __init__(
        self,
        options_type: type[OptionsT],
        solve: Callable[..., Estimates],
        takes_factors: bool,
        plans_memory: bool,
    ) -> None:
        self.name = solve.__name__
        self.takes_factors, self.plans_memory = takes_factors, plans_memory
        self.options_type = options_type
        self._solve = solve
        SOLVED_BY[self.name] = self.solve
        self.__doc__ = method_docstring(solve.__doc__ or "", type(self), options_type)
        self.__name__ = self.__qualname__ = solve.__name__
        self.__module__ = solve.__module__
        self.__wrapped__ = solve
        self.__signature__ = signature_of(options_type)

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        """Return the method itself: `help` then takes it for a routine, and shows its parameters."""
        return self

    @overload
    def __call__(self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Any) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Any
    ) -> Estimates: ...
    def __call__(
        self,
        model: Model | Batch,
        *unnamed: object,
        evidence: AnySets = None,
        beta: AnyBeta = None,
        start: Start | None = None,
        rng: Seed = None,
        progress: Listener[Progress] = None,
        options: OptionsT | None = None,
        **changes: Any,
    ) -> Estimate | Estimates:
        if unnamed:  # (Python's own error would count this object too)
            raise OptionError(
                f"{self.name}: expected the model alone without a name, found {1 + len(unnamed)} arguments; the others "
                "are named, as in evidence={variable: state}"
            )
        if not isinstance(model, Batch):
            check_model(model)
        chosen = self.options(options, self.with_rng(changes, rng))
        grace = _grace(model.model if isinstance(model, Batch) else model)
        with (
            as_callback(progress, "solving") as listener,
            Budget(chosen.time, listener, grace=grace).interruptible() as budget,
        ):
            if isinstance(model, Batch):
                if evidence is not None:
                    raise OptionError("evidence goes with a model; a batch has its evidence in its lanes")
                batch, single = model, False
            else:
                sets = several_sets(evidence)
                single = sets is None
                one: Any = {} if evidence is None else evidence
                batch = Batch.from_evidence(model, [one] if sets is None else sets)
            if beta is not None:
                batch, single = batch.at(beta), single and np.ndim(beta) == 0
            estimates = self._solved(batch, chosen, start, budget, {})
            return estimates[0] if single else estimates

    def with_rng(self, changes: Mapping[str, Any], rng: Seed) -> dict[str, Any]:
        """Add to single options the seed that `rng` means, where the method has one."""
        seeded = with_rng(changes, rng)
        return seeded if hasattr(self.options_type, "seed") else dict(changes)

    def solve(
        self,
        batch: Batch,
        options: OptionsT,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        *,
        weights: ForestWeights | None = None,
        within: Budget = UNLIMITED,
    ) -> Estimates:
        """Solve a batch, perhaps within the budget of another run; TRW may be given edge weights in place of its
        options'. Stops with that run."""
        budget = Budget(options.time, progress, within=within, grace=_grace(batch.model))
        with budget.interruptible():
            return self._solved(batch, options, start, budget, {} if weights is None else {"weights": weights})

    def _solved(
        self, batch: Batch, options: OptionsT, start: Start | None, budget: Budget, given: dict[str, ForestWeights]
    ) -> Estimates:
        """Solve a batch; estimates without a result where the budget was over before."""
        if batch.beta is not None:
            return self._at_temperatures(batch, batch.beta, options, start, budget, given)
        try:
            budget.check_cancelled()
            if not self.plans_memory and options.memory is not None:
                self._check_memory(batch, as_bytes(options.memory))
            if self.takes_factors or not batch.model.factors:
                return self._solve(batch, options, start, budget, **given)
            # the pairwise model that a model with larger factors is equivalent to
            equivalent = Equivalent.of(batch.model, budget)
            if isinstance(start, Estimate | Estimates):
                start = equivalent_start(equivalent, start)
            elif start is not None:
                start = equivalent.marginals(start_marginals(batch, start))
            return equivalent.to_original(
                batch.model, self._solve(equivalent.batch(batch), options, start, budget, **given)
            )
        except Cancelled:
            return stopped_estimates(self.name, batch.model, batch.num_lanes, options, budget.stopped_by or "time")

    def _at_temperatures(
        self,
        batch: Batch,
        beta: Floats,
        options: OptionsT,
        start: Start | None,
        budget: Budget,
        given: dict[str, ForestWeights],
    ) -> Estimates:
        """Solve lanes of equal inverse temperature as a batch of the model at that, in an even share of the time.
        Bounds are widened by what rounding has changed in the potentials."""
        model, values = batch.model, np.unique(beta)
        groups = [np.flatnonzero(beta == value) for value in values]
        if start is not None and not isinstance(start, Estimate | Estimates):
            start = start_marginals(batch, start)
        num_finished = 0

        def tell(progress: Progress) -> None:
            done = num_finished + progress.num_finished
            if not budget.must_stop():
                of_lane = {"residual": progress.residual, "log_z": progress.log_z}
                budget.report(self.name, progress.num_iter, **of_lane, num_lanes=batch.num_lanes, num_finished=done)
            if budget.must_stop():
                raise StopIteration

        parts = []
        for g, (value, lanes) in enumerate(zip(values, groups, strict=True)):
            callback = tell if budget.listening else None
            share = Budget(budget.left(1.0 / (len(values) - g)), callback, within=budget, grace=_grace(model))
            own = {name: weights.take(lanes) for name, weights in given.items()}
            some = batch.take(lanes)
            part = self._solved(some.scaled(), options, _start_of(start, lanes, len(beta)), share, own)
            parts.append(part.widened(some.sizes.rounding(float(value))))
            num_finished += len(lanes)
        return replace(merge_runs(parts, groups), model=model, batch=batch)

    def fits(self, model: Model, num_bytes: float, num_lanes: int = 1) -> bool:
        """Whether `num_lanes` lanes of a model can be solved in this memory, beyond what the model itself takes."""
        return bytes_of_lanes(model, num_lanes, as_factors=self.takes_factors) <= num_bytes

    def _check_memory(self, batch: Batch, allowed: int) -> None:
        """Refuse, before any work, more lanes than fit into the memory that was given."""
        needed = bytes_of_lanes(batch.model, batch.num_lanes, as_factors=self.takes_factors)
        if needed > allowed:
            raise OptionError(
                f"memory: expected at least {needed:,} bytes for {counted(batch.num_lanes, 'lane')} of this size, "
                f"found {allowed:,}"
            )

    def options(self, options: OptionsT | None, changes: Mapping[str, Any]) -> OptionsT:
        """Return the options of a call: those given, or the defaults, with some of them changed."""
        return self.options_type.chosen(options, changes)

    def __repr__(self) -> str:
        return f"<approximation {self.name}>"


def _start_of(start: Start | None, lanes: Integers, num_lanes: int) -> Start | None:
    """Select the starts of some lanes: their own, or the one for all."""
    if start is None or isinstance(start, Estimate) or (isinstance(start, Estimates) and len(start) != num_lanes):
        return start
    if not isinstance(start, Estimates):
        return take_lanes(start, lanes)
    taken = start.take(lanes)
    return replace(taken, state=taken.state.single_run()) if isinstance(taken.state, GroupedRuns) else taken


def _grace(model: Model) -> float:
    """Return the seconds after its end in which a method still gives the least answer; no limit on a small model."""
    return math.inf if is_small(model) else GRACE


def signature_of(options_type: type[Options]) -> inspect.Signature:
    """Make the signature of a call for readers: the parameters of all methods, and every option by name."""
    call = inspect.signature(Method.__call__).parameters.values()
    shared = [each.replace(annotation=each.empty) for each in call if each.name not in ("self", "unnamed", "changes")]
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(field.name, keyword, default=field.default) for field in fields(options_type)]
    return inspect.Signature([*shared, *options])


def method_docstring(doc: str, *types: type) -> str:
    """Compose a method's docstring: what it does, the parameters of call and options, results and errors, and its
    example."""
    text, mark, example = inspect.cleandoc(doc).partition(">>> ")
    parameters: dict[str, str] = {}
    results = ""
    for kind in (base for last in types for base in reversed(last.__mro__)):
        _, _, section = inspect.cleandoc(kind.__doc__ or "").partition("\n----------\n")
        listed, _, after = section.partition("\n\nReturns\n")
        parameters |= dict(re.findall(r"^(\w+)\n((?: .*\n?|\n(?= ))+)", listed, re.MULTILINE))
        results = f"Returns\n{after}\n\n" if after else results
    entries = "\n".join(f"{name}\n{words.rstrip()}" for name, words in parameters.items())
    return f"{text}Parameters\n----------\n{entries}\n\n{results}Examples\n--------\n{mark}{example}"


def approximation(
    kind: type[MethodT], options_type: type[Options], *, takes_factors: bool = False, plans_memory: bool = False
) -> Callable[[Callable[..., Estimates]], MethodT]:
    """Decorate a function (batch, options, start, budget) -> Estimates to make it a method of its name.

    TRW's has an argument `weights` too.  With `takes_factors` it works on factors of any size itself, with
    `plans_memory` it limits its memory itself.
    """
    return lambda solve: kind(options_type, solve, takes_factors, plans_memory)
