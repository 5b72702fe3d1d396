"""Log Z by counting: models full of hard zeros as weighted clauses, given to programs that are made for those.

Two of them work side by side.  Ganak (`ganak`) counts nearly everything that can be counted, and its count is right
with high probability.  A compiler (`circuits`) does not get so far, but what it finds can be proven, and gives the
marginals of all variables at once.
"""

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter, sleep

import numpy as np

from clampz.model import Model
from clampz.model_counting import circuits, ganak
from clampz.model_counting.circuits import Circuit
from clampz.model_counting.encoding import Clauses, TooMuch, encode
from clampz.model_counting.subprocesses import Failed
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import LOOK, Budget, Cancelled
from clampz.runtime.options import memory_allowed

MISSING = (
    "install clampz[counting] to count models full of hard zeros (constraints, circuits, pedigrees) whose tables are "
    "too wide to sum"
)
OUT_OF_TIME = "time was up before the count was done"
OUT_OF_MEMORY = "there was not enough memory"
# Seconds before the counter begins: what the compiler can do at all it has mostly done by then, in less work.
HEAD_START = 1.0
# Once there is a count, a proof has as long again, and these seconds: nobody waits for ever where time is not limited.
PATIENCE = 1.0
# How far above 1 the share of a state may be, both counts being rounded.
ABOVE_ONE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """What counting found.

    Attributes
    ----------
    log_z
        None where there is no count, and `why_none` says why.
    error
        How far off rounding may leave it, if the count is right.
    is_proven
        Whether it is: then log Z is within `error` of `log_z`.  If not, the count is right with high probability, and
        no bound.
    lower
        A proven lower bound on log Z, rounding included; -inf where there is none.
    marginals
        Of the states of all variables in turn, where they were asked for and time allowed; nan where Z = 0.
    seconds
        That it took.
    """

    log_z: float | None = None
    error: float = math.inf
    is_proven: bool = False
    lower: float = -math.inf
    marginals: Floats | None = None
    why_none: str = ""
    seconds: float = 0.0


def is_available() -> bool:
    """Whether there is a program that counts."""
    return ganak.is_there() or circuits.compiler() is not None


def count(
    model: Model, *, budget: Budget | None = None, memory: int | str | None = None, marginals: bool = False
) -> Counted:
    """Count log Z of a model, in processes of their own that end with the budget; whatever happens to them, there is a
    result.

    >>> implies = [[0.0, 0.0], [-math.inf, 0.0]]
    >>> found = count(Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): implies}))
    >>> found.why_none or round(math.exp(found.log_z), 9)
    3.0
    """
    budget = budget or Budget()
    begun = perf_counter()
    try:
        found = _counted(model, budget, memory_allowed(memory), marginals)
    except (TooMuch, Failed) as reason:
        found = Counted(why_none=str(reason))
    except Cancelled:
        found = Counted(why_none=OUT_OF_TIME)
    except MemoryError:
        found = Counted(why_none=OUT_OF_MEMORY)
    return replace(found, seconds=perf_counter() - begun)


def _counted(model: Model, budget: Budget, memory: int, marginals: bool) -> Counted:
    if not is_available():
        raise Failed(MISSING)
    clauses = encode(model, budget)
    if clauses.has_empty or clauses.num_booleans == 0:
        log_z = -math.inf if clauses.has_empty else clauses.scale
        nothing = np.full(len(clauses.literal_of_state), math.nan if clauses.has_empty else 1.0)
        return Counted(
            log_z=log_z,
            error=0.0 if clauses.has_empty else clauses.error,
            is_proven=True,
            lower=log_z - clauses.error,
            marginals=nothing if marginals else None,
        )
    log_count, circuit, why = _side_by_side(clauses, budget, memory // 3)  # two programs, and what is read here
    if log_count is None and circuit is None:
        raise Failed(why)
    found = _combined(clauses, log_count, circuit)
    if not marginals:
        return found
    try:
        return replace(found, marginals=_marginals(clauses, found, circuit, budget, memory))
    except (Failed, Cancelled):
        return found


def _side_by_side(clauses: Clauses, budget: Budget, memory: int) -> tuple[float | None, Circuit | None, str]:
    """What the counter finds, what the compiler does, and why there may be nothing.  Once one of them has what the
    other could only confirm, that is ended."""
    counting, compiling = budget.share(), budget.share()
    begun = budget.used  # compiling kernels, which a proof may wait for, takes no time on that clock
    until = math.inf
    counted: Future[float] | None = None
    with ThreadPoolExecutor(2) as pool:
        try:
            compiled = pool.submit(circuits.compiled, clauses, compiling, memory)
            while not (compiled.done() and compiled.exception() is None and compiled.result().is_complete):
                if counted is None and (compiled.done() or budget.used - begun > HEAD_START):
                    counted = pool.submit(ganak.log_count, clauses, counting, memory)
                if counted is not None and counted.done():
                    if compiled.done():
                        break
                    if math.isinf(until) and counted.exception() is None:
                        until = budget.used + (budget.used - begun) + PATIENCE
                if budget.used > until:
                    compiling.end()
                budget.must_stop()
                sleep(LOOK)
        finally:
            counting.end()
            compiling.end()
    not_compiled = _why_none(compiled)
    circuit = None if not_compiled else compiled.result()
    if counted is None:
        return None, circuit, not_compiled
    not_counted = _why_none(counted)
    return None if not_counted else counted.result(), circuit, not_counted if ganak.is_there() else not_compiled


def _why_none(future: Future[float] | Future[Circuit]) -> str:
    """Why nothing came of it; no words if something did."""
    error = future.exception()
    if error is None:
        return ""
    if isinstance(error, MemoryError | Cancelled):
        return OUT_OF_TIME if isinstance(error, Cancelled) else OUT_OF_MEMORY
    if isinstance(error, Failed):
        return str(error)
    raise error


def _combined(clauses: Clauses, log_count: float | None, circuit: Circuit | None) -> Counted:
    if circuit is None:
        assert log_count is not None
        return Counted(log_z=log_count + clauses.scale, error=_error(clauses, log_count))
    error = circuit.rounding + _error(clauses, circuit.log_count)
    lower = circuit.log_count + clauses.scale - error
    # a circuit has nothing that does not belong: of two counts that differ the higher is nearer
    best = circuit.log_count if log_count is None or circuit.is_complete else max(log_count, circuit.log_count)
    return Counted(log_z=best + clauses.scale, error=error, is_proven=circuit.is_complete, lower=lower)


def _error(clauses: Clauses, log_count: float) -> float:
    """How far off log Z may be by rounding of the weights, and of one last sum."""
    return 0.0 if log_count == -math.inf else clauses.error + 4 * EPS * (1.0 + abs(log_count) + abs(clauses.scale))


def _marginals(clauses: Clauses, found: Counted, circuit: Circuit | None, budget: Budget, memory: int) -> Floats:
    """By the circuit, if it has all that was counted, or by a count for each state."""
    assert found.log_z is not None
    literals = clauses.literal_of_state
    if found.log_z == -math.inf:
        return np.full(len(literals), math.nan)
    if circuit is not None and circuit.log_count + clauses.scale >= found.log_z - found.error:
        probabilities = circuit.probabilities()[2 * np.abs(literals) + (literals < 0)]
        return np.where(literals == 0, 1.0, probabilities)
    about = found.log_z - clauses.scale
    asked = literals[literals > 0]
    shares = np.exp(ganak.log_counts(clauses, about, asked.tolist(), budget, memory) - about)
    if (shares > 1.0 + ABOVE_ONE).any():
        raise Failed("counts of single states are larger than that of all")
    probability = np.ones(clauses.num_booleans + 1)
    probability[asked] = np.minimum(shares, 1.0)
    return np.where(literals < 0, 1.0 - probability[np.abs(literals)], probability[np.abs(literals)])
