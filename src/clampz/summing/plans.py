"""SumPlan: how to sum over the lanes of a batch, what that takes, and the sum."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clampz.display.formatting import counted
from clampz.elimination.cost import WITH_MARGINALS, elimination_seconds
from clampz.elimination.exact import ExactOptions, ExactState, exact_estimates, not_reached, run_exact
from clampz.elimination.plans import NO_LIMIT, ExactPlan, Restriction, too_large
from clampz.elimination.slice_plans import SlicedPlan, Slicer
from clampz.elimination.slices import Slices, sum_in_slices
from clampz.errors import OptionError, TooWideError
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.numerics import Floats
from clampz.planar.ising import Unfit
from clampz.planar.plans import BYTES_PER_EDGE, PlanarPlan
from clampz.planar.sums import sum_by_plan
from clampz.presolve.simplified import postsolve
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words, memory_allowed
from clampz.summing.blocks import Asked, BlockBeliefs, beliefs_in_blocks, quick_entries, sum_entries
from clampz.summing.lanes import SimplerLanes, check_room
from clampz.summing.returning import OUT_OF_TIME, Returning

# Shares of the time that simplifying may take: where there are answers without a sum, and where there are none.
SIMPLIFYING_SHARE, SHARE_IF_NEEDED = 0.2, 0.5
CUT_SHORT = "there was no time to simplify it, which may make it narrower: allow more with time="
# Entries that a sum visits, with marginals, in ten times the milliseconds that simplifying takes however small a model.
WORTHWHILE_ENTRIES = 2.0**23
# Marginals that take longer than this many seconds, and so many times as long as log Z alone, are looked for a few at a
# time.
LONG_SECONDS, MUCH = 0.1, 4.0
# Seconds beyond which a sum is taken in slices, if that is quicker.
SLICED_SECONDS = 1.0
# Seconds of a sum for log Z from which what it leaves out comes back into it; to sum the little that is around a few
# variables anew is quicker where log Z takes less.
LONG_ENOUGH = 2e-3
# Table entries, by an order that is soon found, from which there is no need of a better one to see that.
HOPELESS_ENTRIES = 2.0**40


@dataclass(frozen=True, eq=False)
class SumPlan:
    """How to sum over the lanes of a batch.

    Attributes
    ----------
    simpler
        The lanes of what simplifying leaves, which are summed; None for those of the batch itself.
    how
        By elimination; or, of a single lane, as a planar graph.
    in_parts
        Whether that is for log Z alone, and marginals are found a few at a time.
    joint
        Then, how all of them could be found at once, if in any way.
    sliced
        How a single lane is summed in slices, if it is.
    """

    batch: Batch
    simpler: SimplerLanes | None
    how: ExactPlan | PlanarPlan
    marginals: bool
    in_parts: bool = False
    joint: "SumPlan | None" = None
    sliced: SlicedPlan | None = None

    @classmethod
    def of(
        cls,
        batch: Batch,
        memory: int | str | None = NO_LIMIT,
        *,
        marginals: bool = True,
        engine: str = "auto",
        room: int | str | None = None,
        budget: Budget | None = None,
        needed: bool = True,
    ) -> "SumPlan":
        """A sum of a moment is planned as the batch is.  Otherwise it is simplified first, if there is `room` for that;
        a single lane that is a planar graph is summed as one where that is quicker.  Raises what `ExactPlan.of`
        does, and Overdue as soon as the watch is over where a plan is not `needed` for an answer."""
        check, share = (_check_overdue, SHARE_IF_NEEDED) if needed else (_check_stop, SIMPLIFYING_SHARE)
        check_room(batch, memory)
        restricted = _quick_restriction(batch, budget) if too_large(batch, memory) is None else None
        if restricted is not None and engine != "planar":
            how = ExactPlan.of(batch, memory, marginals=marginals, restricted=restricted, budget=budget)
            return cls(batch, None, how, marginals)
        check(budget)
        planar = None
        if engine != "elimination" and batch.num_lanes == 1:
            try:
                found = PlanarPlan.of(batch.lane(0), marginals=marginals, budget=budget, memory=memory)
            except Cancelled:
                if engine == "planar":
                    raise
                found = Unfit("there is no time to look for one")  # which says nothing about other ways
            if engine == "planar" and isinstance(found, Unfit):
                raise OptionError(f"engine: there is no planar sum of this model: {found.reason}")
            planar = None if isinstance(found, Unfit) else cls(batch, None, found, marginals)
        if engine == "planar" and planar is not None:
            return planar
        simpler = SimplerLanes.of(batch, marginals=marginals, memory=room, budget=_share(budget, share))
        check(budget)
        restricted, too_wide = None, too_large(simpler.batch, memory)
        if too_wide is None:
            restricted = Restriction.of_lanes(simpler.batch)
        hopeless = marginals and (
            restricted is None or math.isinf(sum_entries(restricted.scopes, HOPELESS_ENTRIES, budget))
        )
        check(budget)
        ways = cls._in_parts(simpler, [], memory, room, budget) if hopeless else []
        if not ways and restricted is not None:
            check(budget)
            try:
                how = ExactPlan.of(simpler.batch, memory, marginals=marginals, restricted=restricted, budget=budget)
                ways = [cls(batch, None if simpler.simplified.is_trivial else simpler, how, marginals)]
            except TooWideError as error:
                too_wide = error.with_traceback(None)  # which would keep all that was laid out
            if marginals and not hopeless and (not ways or ways[0].seconds > LONG_SECONDS):
                ways = cls._in_parts(simpler, ways, memory, room, budget)
                if too_wide is not None and ways:  # in slices all at once may fit, and may be quicker
                    with suppress(TooWideError):
                        how = ExactPlan.of(
                            simpler.batch, NO_LIMIT, marginals=True, restricted=restricted, budget=budget
                        )
                        ways = [replace(ways[0], joint=cls(batch, simpler, how, marginals))]
        if planar is not None:
            ways.append(planar)
        if not ways:
            assert too_wide is not None
            if not simpler.simplified.is_complete:
                too_wide = TooWideError(f"{too_wide}; {CUT_SHORT}", width=too_wide.width, num_bytes=too_wide.num_bytes)
            raise too_wide
        return min(ways, key=lambda way: way.seconds)

    @classmethod
    def _in_parts(
        cls,
        simpler: SimplerLanes,
        joint: list["SumPlan"],
        memory: int | str | None,
        room: int | str | None,
        budget: Budget | None,
    ) -> list["SumPlan"]:
        """Log Z alone, and marginals a few at a time, if much of the model is there for marginals only and log Z takes
        much less without them; else the same ways as before."""
        alone = SimplerLanes.of(
            simpler.original, marginals=False, memory=room, budget=_share(budget, SIMPLIFYING_SHARE)
        )
        if alone.batch.model.num_variables == simpler.batch.model.num_variables:
            return joint
        _check_overdue(budget)
        if too_large(alone.batch, memory) is not None:
            return joint
        restricted = Restriction.of_lanes(alone.batch)
        if not joint and math.isinf(sum_entries(restricted.scopes, HOPELESS_ENTRIES / MUCH, budget)):
            return joint
        try:
            how = ExactPlan.of(alone.batch, memory, marginals=False, restricted=restricted, budget=budget)
        except TooWideError:
            return joint
        if any(how.elimination.visits > way.visits / MUCH for way in joint):
            return joint
        return [cls(simpler.original, alone, how, True, in_parts=True, joint=joint[0] if joint else None)]

    @property
    def summed(self) -> Batch:
        """The lanes that are summed."""
        return self.batch if self.simpler is None else self.simpler.batch

    @property
    def seconds(self) -> float:
        """Of one thread, whoever helps it."""
        if isinstance(self.how, PlanarPlan):
            return self.how.seconds(marginals=self.marginals)
        if self.sliced is not None:
            return self.sliced.seconds * (WITH_MARGINALS if self._at_once else 1.0)
        return self.batch.num_lanes * elimination_seconds(self.how.elimination, marginals=self._at_once)

    def duration(self, num_threads: int) -> float:
        """Seconds until so many threads are done with a single lane, whose long steps they share."""
        if isinstance(self.how, PlanarPlan):
            return self.seconds
        if self.sliced is not None:
            return self.seconds * self.sliced.duration / self.sliced.seconds
        return self.seconds / self.how.elimination.speed_up(self._at_once, num_threads)

    @property
    def _at_once(self) -> bool:
        """Whether marginals come with log Z."""
        return self.marginals and not self.in_parts

    @property
    def visits(self) -> float:
        """Table entries that the pass forwards visits, or would in the time that the sum takes."""
        if isinstance(self.how, PlanarPlan):
            return math.inf
        return self.how.elimination.visits if self.sliced is None else self.sliced.num_sums * self.sliced.entries

    @property
    def num_bytes(self) -> int:
        if isinstance(self.how, PlanarPlan):
            return BYTES_PER_EDGE * self.how.num_edges
        return self.how.elimination.num_bytes(self._at_once)

    @property
    def width(self) -> int:
        return 0 if isinstance(self.how, PlanarPlan) else self.how.elimination.width

    def words(self) -> str:
        """Why the sum can be taken, and in which way, as a sentence."""
        if isinstance(self.how, PlanarPlan):
            return "The model is a planar graph, which is solved exactly however wide."
        way = f"width {self.width}, {bytes_in_words(self.num_bytes)}"
        if self.sliced is not None:
            way = f"in {self.sliced.num_sums:,} slices of {bytes_in_words(int(self.sliced.num_bytes))} (at once: {way})"
        needs = f"narrow enough to be solved exactly{': ' if self.sliced is None else ' '}{way}."
        if self.simpler is None:
            return f"The model is {needs}"
        left, all_of_them = self.summed.model.num_variables, counted(self.batch.model.num_variables, "variable")
        parts = " Marginals are summed a few at a time, as all at once are too wide." if self.in_parts else ""
        return f"Simplifying leaves {left:,} of {all_of_them}, and these are {needs}{parts}"

    def in_slices(self, options: ExactOptions, most_seconds: float, budget: Budget | None) -> "SumPlan | None":
        """The sum of a single lane in slices, on all threads, within the memory that is allowed and so many seconds;
        None where there is no such way, none that is quicker, or no need of one."""
        allowed, num_threads = memory_allowed(options.memory), options.num_threads
        is_short = self.num_bytes <= allowed and self.duration(num_threads) <= SLICED_SECONDS
        if not isinstance(self.how, ExactPlan) or is_short:
            return None
        found = Slicer(self.summed.model).plan(
            self.summed.unary[:, 0],
            most_seconds,
            allowed,
            how=self.how,
            marginals=self._at_once,
            num_workers=num_threads,
            sharing=True,
            budget=budget,
        )
        if found is None or not found.fixed:
            return None
        slices = Slices(self.summed.model, self.summed.unary[:, 0], found, marginals=self._at_once)
        with suppress(Cancelled, TooWideError):
            slices.begin(budget)
            return replace(self, sliced=replace(found, how=slices.how))
        return None

    def run(self, options: ExactOptions, budget: Budget) -> Estimates:
        """The sums, with marginals if these were planned for."""
        return replace(self._run(options, budget), batch=self.batch)

    def _run(self, options: ExactOptions, budget: Budget) -> Estimates:
        if isinstance(self.how, PlanarPlan):
            found = _planar(self.batch, self.how, options, budget)
            if found.converged[0] or options.engine == "planar":
                return found
            return self._else_by_elimination(found, options, budget)
        once = replace(options, marginals=False) if self.in_parts else options
        if self.sliced is None:
            found = run_exact(self.summed, once, budget, self.how)
        else:
            found = sum_in_slices(self.summed.lane(0), self.sliced, once, budget)
        found = found if self.simpler is None else self._back(self.simpler, found, options.memory)
        return self._with_marginals(found, options, budget) if self.in_parts else found

    def _with_marginals(self, found: Estimates, options: ExactOptions, budget: Budget) -> Estimates:
        """The same lanes with marginals, as far as time and memory suffice; or all of them at once, if that is
        quicker."""
        joint = self.joint
        if joint is not None and joint.num_bytes > memory_allowed(options.memory):
            joint = joint.in_slices(options, budget.left(), budget) if self.batch.num_lanes == 1 else None
        lanes = np.flatnonzero(np.isfinite(found.log_z)).tolist()
        few_at_a_time = self._in_rounds if self.seconds >= LONG_ENOUGH else self._block_by_block
        parts = few_at_a_time(joint, lanes, options, budget)
        if parts is None:
            assert joint is not None
            at_once = joint.run(options, budget)
            if joint.sliced is None or at_once.converged.all():
                return at_once
            parts = few_at_a_time(None, lanes, options, budget)
            assert parts is not None
        flat, notes = np.full(self.batch.unary.shape, np.nan), list(found.notes)
        for lane, (marginals, why_none) in zip(lanes, parts, strict=True):
            flat[:, lane], notes[lane] = marginals, why_none or notes[lane]
        state = ExactState(None, partial(self._tables, options.memory), len(self.batch.model.pairwise.flat))
        return replace(found, options=options, marginals_flat=flat, notes=notes, state=state)

    def _in_rounds(
        self, joint: "SumPlan | None", lanes: list[int], options: ExactOptions, budget: Budget
    ) -> list[BlockBeliefs] | None:
        """Marginals of lanes: what is missing comes back into the sum for log Z, round by round.  None where all at
        once is quicker, or there is not memory enough for rounds."""
        assert isinstance(self.how, ExactPlan) and self.simpler is not None
        lost, start = postsolve(self.simpler.simplified).lost.tolist(), self.batch.model.unary.start
        returning = Returning(self.simpler, self.how, [(v,) for v in lost], options.memory, budget)
        if joint is not None and (returning.why_none or joint.seconds < returning.seconds):
            return None
        found = []
        for lane in lanes:
            flat, tables = returning.run(lane, options.num_threads, budget)
            for v, table in zip(lost, tables, strict=True):
                if table is not None:
                    flat[start[v] : start[v + 1]] = table
            found.append(BlockBeliefs(flat, (returning.why_none or OUT_OF_TIME) if np.isnan(flat).any() else ""))
        return found

    def _block_by_block(
        self, joint: "SumPlan | None", lanes: list[int], options: ExactOptions, budget: Budget
    ) -> list[BlockBeliefs] | None:
        """The same where log Z takes next to nothing: what is missing is summed anew, a few at a time."""
        known, found = self._known_marginals(options, budget), []
        alone = sum_entries(Restriction.of_lanes(self.summed).scopes, HOPELESS_ENTRIES, budget)
        alone = alone if math.isfinite(alone) else 0.0
        for lane in lanes:
            model, flat = self.batch.lane(lane), known[:, lane].copy()
            asked = Asked.of_variables(model, np.flatnonzero(np.isnan(flat[model.unary.start[:-1]])))
            visits = math.inf if joint is None else joint.visits
            beliefs = beliefs_in_blocks(model, asked, options.memory, budget, visits, alone)
            if beliefs is None:
                return None
            flat[np.isnan(flat)] = beliefs.flat
            found.append(beliefs._replace(flat=flat))
        return found

    def _known_marginals(self, options: ExactOptions, budget: Budget) -> Floats:
        """(S, B) of variables whose marginals follow from those of what was summed for log Z, else nan."""
        flat = np.full(self.batch.unary.shape, np.nan)
        assert isinstance(self.how, ExactPlan) and self.simpler is not None
        if self.how.elimination.num_bytes(True) <= memory_allowed(options.memory):
            found = run_exact(self.summed, options, budget, self.how)
            for lane in np.flatnonzero(np.isfinite(found.log_z)).tolist():
                flat[:, lane] = self.simpler.marginals(found, lane, known=True)
        return flat

    def _back(self, simpler: SimplerLanes, found: Estimates, memory: int | str | None) -> Estimates:
        """Of the original's lanes, from those of the rest."""
        batch, log_z = simpler.original, found.log_z
        possible = log_z > -np.inf
        flat = np.full(batch.unary.shape, np.nan)
        if self._at_once:
            for lane in np.flatnonzero(np.isfinite(log_z)).tolist():
                flat[:, lane] = simpler.marginals(found, lane)
        again = partial(self._tables_back, simpler, found, memory) if self._at_once else None
        return replace(
            found,
            model=batch.model,
            lower=np.where(possible, found.lower - simpler.error, found.lower),
            upper=np.where(possible, found.upper + simpler.error, found.upper),
            marginals_flat=flat,
            state=ExactState(None, again, len(batch.model.pairwise.flat)),
        )

    def _tables_back(self, simpler: SimplerLanes, found: Estimates, memory: int | str | None, lane: int) -> Floats:
        """Marginals of the edges and larger factors of a lane; a few at a time where all that fell apart is too wide
        together."""
        try:
            return simpler.tables(found, lane, memory)
        except TooWideError:
            return self._tables(memory, lane)

    def _tables(self, memory: int | str | None, lane: int) -> Floats:
        """Marginals of the edges and larger factors of a lane."""
        model = self.batch.lane(lane)
        beliefs = beliefs_in_blocks(model, Asked.tables_of(model), memory, Budget())
        assert beliefs is not None
        return beliefs.flat

    def _else_by_elimination(self, found: Estimates, options: ExactOptions, budget: Budget) -> Estimates:
        """Of a planar graph whose sum could not be certified."""
        memory = options.memory
        try:
            plan = SumPlan.of(
                self.batch, memory, marginals=self.marginals, engine="elimination", room=memory, budget=budget
            )
        except (TooWideError, Cancelled):
            return found
        return plan.run(options, budget)


def _quick_restriction(batch: Batch, budget: Budget | None) -> Restriction | None:
    """What the lanes leave to sum over, if that is quick."""
    restricted = Restriction.of_lanes(batch)
    return restricted if _is_quick(restricted, batch.num_lanes, budget) else None


def _is_quick(restricted: Restriction, num_lanes: int, budget: Budget | None) -> bool:
    """Whether to look for something simpler would take a tenth of what the sums do, or more."""
    scopes = restricted.scopes
    most = max(WORTHWHILE_ENTRIES, quick_entries(int(scopes.table_start[-1]))) / num_lanes
    if np.log2(np.maximum(scopes.num_states, 1)).sum() <= math.log2(most):
        return True  # in any order
    return sum_entries(scopes, most, budget) < math.inf


def _share(budget: Budget | None, share: float) -> Budget | None:
    return None if budget is None else budget.share(share)


def _check_overdue(budget: Budget | None) -> None:
    """Between the stages of a plan, each of which looks at all of the model."""
    if budget is not None:
        budget.check_cancelled()


def _check_stop(budget: Budget | None) -> None:
    """The same, where there is an answer without the plan."""
    if budget is not None:
        budget.check_stop()


def _planar(batch: Batch, plan: PlanarPlan, options: ExactOptions, budget: Budget) -> Estimates:
    model = batch.lane(0)
    try:
        found = sum_by_plan(model, plan, marginals=options.marginals, budget=budget, memory=options.memory)
    except Cancelled:
        return not_reached(batch, options, budget)
    if isinstance(found, Unfit):
        return replace(not_reached(batch, options, budget), notes=[found.reason])
    unary = found.unary if options.marginals else np.full(len(batch.unary), np.nan)
    state = ExactState(found.pairwise[None] if options.marginals else None, None, len(model.pairwise.flat))
    ends = np.array([found.log_z]), np.array([found.error])
    return replace(exact_estimates(batch, options, budget, *ends, unary[:, None], state), model=batch.model)
