"""Best-first search for a bracket: leaves are refined, expanded or summed exactly where the root's gap comes from,
several at a time."""

import heapq
import math
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bracketing.bracket import CUTS, BoundOptions, Bracket, BracketStop, Point
from clampz.bracketing.leaves import FINISH_SECONDS, MOST_EDGES, Solved, Task, solve
from clampz.bracketing.narrow import Narrow, NarrowState
from clampz.bracketing.tree import EVALUATIONS, Node, Part, groups
from clampz.clamping.growth import clamp
from clampz.clamping.selectors import scores
from clampz.clamping.selectors.registry import TRE
from clampz.elimination.slices import SlicedPlan, Slicer
from clampz.errors import OptionError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.equivalent import Equivalent
from clampz.model.fixing import components, reduction_error, too_large, without_fixed
from clampz.model.tables import Floats
from clampz.numerics import EPS
from clampz.watch import Watch

# The factor from one refinement of narrow parts to the next, and the share of the time left that it may take.
REFINEMENT, REFINE_SHARE = 8.0, 0.5
# The share of the gap before that a refinement must get to.
WORTH = 0.95
# Evaluations of the upper bound of children, which begin where their parent ended.
CHILD_EVALUATIONS = 8
# What is left may be summed exactly if that takes at most this share of the time left, in so many pieces.
SPRINT_SHARE, MOST_PIECES = 0.6, 256
# Share of the time and of the memory that summing the whole model at once may take.
WHOLE_TIME, WHOLE_MEMORY = 0.75, 0.8
# Clamps after which a branch is cut out of its model and partitioned anew.
CLAMPS_BEFORE_CUT = 4
# Components of at most so many joint states (as a power of two) are summed together.
SMALL_COMPONENT = 16.0
# Bytes of a node.
NODE_BYTES = 1200
# Variables that Bethe's estimate is clamped at, the branches they may make, and the seconds and the share of the time
# that it may take.
MOST_BETHE_CLAMPS, MOST_BETHE_BRANCHES, BETHE_SECONDS, BETHE_SHARE = 3, 64.0, 2.0, 0.05


class Search:
    """A search under way: the tree, and the leaves that wait, widest share of the gap first."""

    watch: Watch
    threads: int
    stop: Callable[[], bool] | None

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.user_model = model
        self.options = options
        self.slack = 0.0
        self.model = model
        if model.factors:
            equivalent = Equivalent.of(model)
            self.model, self.slack = equivalent.model, equivalent.rounding
        if options.select != CUTS:
            scores(
                self.model, options.select.removesuffix(TRE)
            )  # refuses a model that it is not defined for, before any work
        needed = 40 * (len(self.model.unary.flat) + len(self.model.pairwise.flat))
        if options.num_bytes < needed:
            raise OptionError(
                f"memory: expected at least {needed:,} bytes for a model of this size, found {options.num_bytes:,}"
            )
        self.root = Node(None, Part(self.model), (), -math.inf, math.inf)
        self.heap: list[tuple[float, int, Node]] = []
        self.counter = 0
        self.num_nodes, self.num_leaves = 1, 1
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.bethe_value = math.nan
        self.cancelled = False
        self.pruned = False

    # -- running ----------------------------------------------------------------------------------------------------------------

    def run(
        self, executor: Executor, watch: Watch, threads: int, stop: Callable[[], bool] | None = None
    ) -> Iterator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        self.watch, self.threads, self.stop = watch, threads, stop
        if self.trace:  # resumed
            yield self._bracket("left")
        else:
            yield from self._begin(executor)
        pending: dict[Future[Solved], tuple[str, Any]] = {}
        last = (self.root.lower, self.root.upper)
        local = isinstance(executor, ThreadPoolExecutor)
        while (reason := self._reason()) is None:
            while len(pending) < threads + (0 if local else threads):
                work = self._next_work()
                if work is None:
                    break
                task, what = work
                try:
                    pending[executor.submit(solve, *((task, self._must_stop) if local else (task,)))] = what
                except BrokenExecutor:  # its workers are gone for good: the rest is done here
                    self._push_back(what[1])
                    executor, local = ThreadPoolExecutor(threads), True
            if not pending:
                reason = "memory" if self.pruned else "exact"
                break
            finished, _ = wait(pending, timeout=0.05, return_when=FIRST_COMPLETED)
            for future in finished:
                kind, about = pending.pop(future)
                try:
                    solved = future.result()
                except Exception:  # a lost worker loses only its work
                    if local:
                        raise
                    self._push_back(about)
                    continue
                self._take(kind, about, solved)
            if (self.root.lower, self.root.upper) != last:
                last = (self.root.lower, self.root.upper)
                yield self._bracket("left")
        self.cancelled = True
        for future, (_, about) in pending.items():
            future.cancel()
            self._push_back(about)
        yield self._bracket(reason)

    def _must_stop(self) -> bool:
        if self.stop is not None and self.watch.stopped_by is None and self.stop():
            self.watch.stopped_by = "interrupt"
        return self.cancelled or self.watch.must_stop()

    def _reason(self) -> BracketStop | None:
        if self.root.upper == self.root.lower or self.root.upper - self.root.lower <= self.options.gap:
            return "gap" if not self.root.settled else "exact"
        if self.root.settled:
            return "exact"
        if self._must_stop():
            return "interrupt" if self.watch.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self.num_leaves >= self.options.leaves:
            return "leaves"
        return None

    @property
    def _left(self) -> float:
        return max(0.0, self.options.time - self.watch.seconds)

    def _begin(self, executor: Executor) -> Iterator[Bracket]:
        """Bounds on the whole, quickly; or all of it at once, where that fits in the time and memory given."""
        node = self.root
        if self.model.topology.num_components != 1:
            self._split(node, self.model, 0.0)
        else:
            self.push(node)
        if self.options.exact and self.options.time > 0:
            plan = Slicer(self.user_model).plan(
                self.user_model.unary.flat,
                WHOLE_TIME * self._left,
                WHOLE_MEMORY * self.options.num_bytes,
                thorough=self._left > 2.0,
            )
            if plan is not None and not plan.fixed:
                if plan.seconds > FINISH_SECONDS:
                    self._quick_bounds()
                    yield self._bracket("left")
                waiting = executor.submit(whole_sum, self.user_model, plan)
                while not waiting.done() and not self._must_stop():
                    wait([waiting], timeout=0.05)
                if waiting.done():
                    lower, upper = waiting.result()
                    node.lower, node.upper = max(node.lower - self.slack, lower), min(node.upper + self.slack, upper)
                    node.settled, self.slack = True, 0.0
                    self.heap.clear()
                elif plan.seconds <= FINISH_SECONDS:
                    self._quick_bounds()
                return
        self._quick_bounds()
        yield self._bracket("left")

    def _quick_bounds(self) -> None:
        share = max(0.01, self._left / 8)
        batch = Batch(self.model, self.model.unary.flat[:, None])
        most, threads = self.options.max_iter, self.options.threads
        fields = mean_field(batch, seed=self.options.seed, max_iter=most, threads=threads, time=share)
        trees = trw(batch, max_iter=most, threads=threads, time=share)
        self.root.lower, self.root.upper = (
            max(self.root.lower, float(fields.lower[0])),
            min(self.root.upper, float(trees.upper[0])),
        )
        self.root.state = NarrowState(
            np.nan_to_num(fields.marginals_flat[:, 0], nan=0.5), np.nan_to_num(trees.marginals_flat[:, 0], nan=0.5), []
        )
        self._estimate()

    # -- what to do next ----------------------------------------------------------------------------------------------------------

    def _next_work(self) -> tuple[Task, tuple[str, Any]] | None:
        """The task that promises most, and what it is about: to refine the bounds of a leaf, or to expand it."""
        while (node := self._pop()) is not None:
            part = node.part
            limit = 0.0 if part.narrow is None else part.narrow.limit
            sprint = self._sprint(node)
            if sprint is not None:
                return sprint
            if not node.clamps and not part.refined and not (part.narrow is not None and part.narrow.is_exact):
                wider = self._allowed(part, part.tried * REFINEMENT if part.tried else part.first_limit)
                soon = not limit or part.refine_seconds(wider) < REFINE_SHARE * self._left
                if part.model.num_edges <= MOST_EDGES and wider > part.tried and soon:
                    part.tried = wider
                    return self._task(part, node.unary()[:, None], None, wider, [node.state], EVALUATIONS), (
                        "refine",
                        node,
                    )
                part.refined = True
            variable = self._choose(node)
            if variable is not None:
                children = [
                    Node(node, part, (*node.clamps, (variable, group)), -math.inf, node.upper)
                    for group in groups(node, variable)
                ]
                unary = np.stack([child.unary() for child in children], axis=1)
                return self._task(part, unary, part.narrow, limit, [node.state] * len(children), CHILD_EVALUATIONS), (
                    "expand",
                    (node, children),
                )
            node.settled = True  # no variable has a choice left
            node.refresh()
        return None

    def _sprint(self, node: Node) -> tuple[Task, tuple[str, Any]] | None:
        """To the end: where all that is below a leaf can be summed exactly in the time left, it is, in pieces of a
        moment each."""
        part = node.part
        if not self.options.exact or 0 <= len(node.clamps) - part.too_wide < 3:
            return None
        unary = node.unary()
        plan = part.slicer.plan(unary, SPRINT_SHARE * self._left * self.threads, self.options.num_bytes / 4)
        if plan is None:
            part.too_wide = len(node.clamps)
            return None
        if plan.seconds <= FINISH_SECONDS:
            return self._task(part, unary[:, None], part.narrow, 0.0, [node.state], 1), ("refine", node)
        if not plan.fixed:
            return None
        pieces = [node]
        for variable in plan.fixed:
            pieces = [
                Node(node, part, (*piece.clamps, (variable, group)), -math.inf, node.upper)
                for piece in pieces
                for group in groups(piece, variable, apart=True)
            ]
            if plan.seconds / len(pieces) <= FINISH_SECONDS or len(pieces) >= MOST_PIECES:
                break
        task = self._task(
            part, np.stack([piece.unary() for piece in pieces], axis=1), part.narrow, 0.0, [None] * len(pieces), 1
        )
        return task._replace(exact=False), ("expand", (node, pieces))

    def _task(
        self,
        part: Part,
        unary: Floats,
        narrow: Narrow | None,
        limit: float,
        starts: list[NarrowState | None],
        evaluations: int,
    ) -> Task:
        options = self.options
        return Task(
            part.model,
            unary,
            narrow,
            limit,
            starts,
            self._left,
            options.exact,
            evaluations,
            options.max_iter,
            options.num_bytes / 4,
            options.seed,
        )

    def _allowed(self, part: Part, limit: float) -> float:
        """Without exact sums, no narrow part may have all of a part."""
        if self.options.exact:
            return limit
        return min(limit, float(np.prod(np.minimum(part.model.num_states, 2)[:20])) / 4)

    def _choose(self, node: Node) -> int | None:
        """The variable to clamp: strong where the partitions cut, and undecided; or as a selector scores them."""
        part = node.part
        unary = node.unary()
        start = part.model.unary.start
        left = np.add.reduceat(unary > -np.inf, start[:-1])
        if (left <= 1).all():
            return None
        beliefs = (
            node.state.beliefs
            if node.state is not None and node.state.beliefs.any()
            else np.where(unary > -np.inf, 0.5, 0.0)
        )
        entropy = np.add.reduceat(
            np.where(beliefs > 0, -beliefs * np.log(np.maximum(beliefs, 1e-300)), 0.0), start[:-1]
        )
        weight = part.narrow.cut_weight() if part.narrow is not None else np.zeros(part.model.num_variables)
        i, j = part.model.edges.T
        open_edges = (left[i] > 1) & (left[j] > 1)
        strength = np.tanh(part.model.strength / 4) * open_edges
        n = part.model.num_variables
        total = (np.bincount(i, strength, n) + np.bincount(j, strength, n)).astype(np.float64)
        if self.options.select != CUTS:
            found = scores(
                part.model, self.options.select.removesuffix(TRE), clamped=np.flatnonzero(left <= 1).tolist()
            )
            weight, total = (
                (found, 1e-6 * total) if self.options.select.endswith(TRE) else (found / (entropy + 1e-3), np.zeros(n))
            )
        score = np.where(left > 1, (weight + 1e-2 * total) * (entropy + 1e-3) + 1e-9, -1.0)
        return int(np.argmax(score))

    def _pop(self) -> Node | None:
        while self.heap:
            _, _, node = heapq.heappop(self.heap)
            if not node.settled and not node.children and node.upper > node.lower:
                return node
        return None

    def push(self, node: Node) -> None:
        if node.settled or node.children:
            return
        key = node.key(self.options.criterion)
        if key == -math.inf:
            node.settled = True
            return
        self.counter += 1
        heapq.heappush(self.heap, (-key, self.counter, node))

    def _push_back(self, about: Any) -> None:
        """A leaf that something was to be done about waits again."""
        self.push(about if isinstance(about, Node) else about[0])

    # -- what came of it ------------------------------------------------------------------------------------------------------------

    def _take(self, what: str, about: Any, solved: Solved) -> None:
        if what == "refine":
            node = about
            node.lower, node.upper = max(node.lower, float(solved.lower[0])), min(node.upper, float(solved.upper[0]))
            node.settled = solved.exact[0]
            self._adopt(node, solved)
            (node.parent or node).refresh()
            self.push(node)
            return
        node, children = about
        for child, lower, upper, is_exact, state in zip(
            children, solved.lower, solved.upper, solved.exact, solved.states, strict=True
        ):
            child.lower, child.upper = max(child.lower, float(lower)), min(child.upper, float(upper))
            child.settled, child.state = bool(is_exact) or child.upper == -math.inf, state
        node.children, node.state = children, None
        self.num_nodes += len(children)
        self.num_leaves += len(children) - 1
        for child in children:
            if not child.settled:
                self._settle_in(child)
        node.refresh()
        self._keep_memory()

    def _adopt(self, node: Node, solved: Solved) -> None:
        """Take over wider parts, and where their bounds have got to, if they are worth their price for the children as
        well."""
        part = node.part
        gap = float(solved.upper[0] - solved.lower[0])
        if solved.narrow is None:
            part.refined |= not node.settled
        elif part.narrow is None or gap <= WORTH * part.gap:
            part.narrow, part.gap, node.state = solved.narrow, gap, solved.states[0]

    def _settle_in(self, child: Node) -> None:
        """A new leaf: cut out and split into components where it has come apart or far enough, else it waits as it
        is."""
        far = len(child.clamps) >= CLAMPS_BEFORE_CUT
        if (not far and (len(child.clamps) % 2 or child.part.model.num_edges > MOST_EDGES)) or too_large(
            child.part.model
        ):
            self.push(child)
            return
        unary = child.unary()
        model = without_fixed(child.part.model, unary)
        if model is None:
            child.lower = child.upper = -math.inf
            child.settled = True
        elif far or model.topology.num_components != 1:
            self._split(child, model, reduction_error(child.part.model, unary))
        else:
            self.push(child)

    def _limit_of(self, part: Part) -> float:
        return part.first_limit if part.narrow is None else part.narrow.limit

    def _split(self, node: Node, model: Model, error: float) -> None:
        """Make a node the sum of the components of a model that is the same but for this error, and of what is
        constant."""
        error += EPS * abs(model.constant)
        rest = Node(node, node.part, (), model.constant - error, model.constant + error)
        rest.settled = True
        parts = components(model, small=SMALL_COMPONENT if self.options.exact else 0.0)
        node.is_and = True
        node.children = [Node(node, Part(part, self._limit_of(node.part)), (), -math.inf, math.inf) for part in parts]
        self.num_nodes += len(parts) + 1
        self.num_leaves += len(parts)
        if len(parts) == 1:
            node.children[0].lower, node.children[0].upper = node.lower - rest.upper, node.upper - rest.lower
        else:
            for child in node.children:
                task = self._task(child.part, child.part.model.unary.flat[:, None], None, 0.0, [None], 1)
                solved = solve(task, self._must_stop)
                child.lower, child.upper, child.settled, child.state = (
                    float(solved.lower[0]),
                    float(solved.upper[0]),
                    solved.exact[0],
                    solved.states[0],
                )
        together = rest.upper + sum(child.upper for child in node.children if math.isfinite(child.upper))
        for child in node.children:
            child.other = node.other + together - (child.upper if math.isfinite(child.upper) else 0.0)
            self.push(child)
        node.children.append(rest)
        node.refresh()

    def _keep_memory(self) -> None:
        """Let go of what leaves keep for their children, those that matter least first, and of whole branches if that
        is not enough."""
        per_state = 16 * (len(self.model.unary.flat) + len(self.model.pairwise.flat))
        allowed = self.options.num_bytes / 2
        if len(self.heap) * per_state + self.num_nodes * NODE_BYTES <= allowed:
            return
        ordered = sorted(self.heap)
        for _, _, node in ordered[max(16, int(allowed / 2 / per_state)) :]:
            node.state = None
        if self.num_nodes * NODE_BYTES > allowed / 2:
            for _, _, node in ordered[len(ordered) // 2 :]:
                parent = node.parent
                if (
                    parent is not None
                    and not parent.is_and
                    and parent.children
                    and not any(child.children for child in parent.children)
                ):
                    # the parent's bounds have what its children found: they stay, and that is all that is done about it
                    self.num_nodes -= len(parent.children)
                    self.num_leaves -= len(parent.children) - 1
                    for child in parent.children:
                        child.settled = True
                    parent.children = []
                    self.pruned = True

    # -- results ------------------------------------------------------------------------------------------------------------------

    def _bracket(self, reason: BracketStop) -> Bracket:
        seconds = self.seconds_before + self.watch.seconds
        lower, upper = self.root.lower - self.slack, self.root.upper + self.slack
        if lower > upper:
            raise RuntimeError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        self.trace.append(Point(seconds, lower, upper, self.num_leaves))
        middle = (
            (lower + upper) / 2
            if math.isfinite(lower) and math.isfinite(upper)
            else upper
            if math.isfinite(upper)
            else lower
        )
        estimate = middle if math.isnan(self.bethe_value) else min(max(self.bethe_value, lower), upper)
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=estimate,
            trace=tuple(self.trace),
            stopped_by=reason,
            num_leaves=self.num_leaves,
            seconds=seconds,
        )

    def _estimate(self) -> None:
        """Bethe's value with a few variables clamped, which the bracket then holds; none if it has not settled in a
        small share of the time."""
        share = min(BETHE_SECONDS, BETHE_SHARE * self._left)
        largest = np.sort(self.user_model.num_states)[::-1]
        most = int(np.count_nonzero(np.cumprod(largest[:MOST_BETHE_CLAMPS].astype(np.float64)) <= MOST_BETHE_BRANCHES))
        found = clamp(self.user_model, "bethe", k=most, time=share, threads=self.options.threads)
        settled = [step.log_z for step in found.steps if step.converged]
        self.bethe_value = settled[-1] if settled else math.nan


def whole_sum(model: Model, plan: SlicedPlan) -> tuple[float, float]:
    """The sum over all of a model, on a worker."""
    return Slicer(model).total(model.unary.flat, plan)
