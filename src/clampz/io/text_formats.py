"""What the text formats `.uai` and `.fg` share: models as factors of values, number formatting, and checks of files."""

from typing import NoReturn

import numpy as np

from clampz.errors import ModelError
from clampz.io.tokens import Tokens
from clampz.model import Model
from clampz.model.data import fold
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets, piece_of
from clampz.numerics import LARGEST_LOG, Floats, Integers, largest_size

COMMENT = rb"#"

# Values are written without an exponent in this range: not every reader knows 1e-05.
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-30, 1e30
# States that a file may have beyond one per token: without a table to show for them, 20 bytes could ask for all
# memory.
FREE_STATES = 2**16
SMALLEST_NORMAL = np.finfo(np.float64).tiny
# A constant is written as this many factors of LARGEST_LOG at most.
MAX_CONSTANTS = 10**5
# NumPy 1 has no arrays of more axes.  Variables of one state are left out of larger scopes; a table that is there
# cannot have as many others.
MAX_AXES = 32


def as_model(num_states: Integers, arity: Integers, variables: Integers, values: Floats) -> Model:
    """Build the model of factors laid end to end that are known to be sound; their values are overwritten."""
    with np.errstate(divide="ignore"):
        logs = np.log(values, out=values)
    return Model.from_contents(fold(within_axes(num_states, arity, variables, logs)))


def within_axes(num_states: Integers, arity: Integers, variables: Integers, flat: Floats) -> FactorTables:
    """Lay factors out as tables of no more axes than arrays can have."""
    if arity.max(initial=0) > MAX_AXES:
        kept = (num_states[variables] > 1) | (np.repeat(arity, arity) <= MAX_AXES)
        arity = np.bincount(np.repeat(np.arange(len(arity)), arity)[kept], minlength=len(arity))
        variables = variables[kept]
    return FactorTables(num_states, offsets(arity), variables, flat)


def all_factors(model: Model) -> FactorTables:
    """List the factors of a model in the order in which they are written: variables, edges, larger factors."""
    n, larger = model.num_variables, model.factors
    arity = np.concatenate([np.ones(n, dtype=np.int64), np.full(model.num_edges, 2), np.diff(larger.scope_start)])
    variables = np.concatenate([np.arange(n), model.edges.ravel(), larger.variables])
    flat = np.concatenate([model.unary.flat, model.pairwise.flat, larger.flat])
    return FactorTables(model.num_states, offsets(arity), variables, flat)


def factors_of(model: Model, where: str) -> FactorTables:
    """List all factors of a model as they are written, as values instead of logarithms. The constant is in the table of
    the first variable: hardly a reader takes factors over no variables, and not all take two over the same ones. What
    does not fit there is left to further factors of that variable."""
    n, logs = model.num_variables, all_factors(model)
    shift, values = _shifted(logs, where)
    constant = model.constant + shift
    if abs(constant) > MAX_CONSTANTS * LARGEST_LOG:
        raise ModelError(
            f"constant: expected at most {MAX_CONSTANTS * LARGEST_LOG:g} in size in {where}, found {constant:g}"
        )
    if n and 0 < abs(constant) <= LARGEST_LOG:
        first = values[: model.num_states[0]]
        with np.errstate(over="ignore"):
            product = first * np.exp(constant)
        if (((product >= SMALLEST_NORMAL) & (product < np.inf)) | (first == 0)).all():
            first[:], constant = product, 0.0
    over, size = (1, int(model.num_states[0])) if n else (0, 1)
    num_constants = int(np.ceil(abs(constant) / LARGEST_LOG))
    return FactorTables(
        model.num_states,
        offsets(np.concatenate([np.diff(logs.scope_start), np.full(num_constants, over)])),
        np.concatenate([logs.variables, np.zeros(over * num_constants, dtype=np.int64)]),
        np.concatenate([values, np.exp(np.full(size * num_constants, constant / max(num_constants, 1)))]),
    )


def _shifted(factors: FactorTables, where: str) -> tuple[float, Floats]:
    """Exponentiate log tables, shifting those beyond the range of floats into it; returns the shift too."""
    flat, start = factors.flat, factors.start
    if largest_size(flat) <= LARGEST_LOG:
        return 0.0, np.exp(flat)
    high = np.maximum.reduceat(flat, start[:-1])
    low = np.minimum.reduceat(np.where(np.isfinite(flat), flat, np.inf), start[:-1])
    wide = np.flatnonzero(high - low > 2 * LARGEST_LOG)
    if wide.size:
        k = int(wide[0])
        raise ModelError(
            f"potentials of {list(factors[k].scope)}: expected a spread of at most {2 * LARGEST_LOG:g} nats "
            f"in {where}, found {high[k] - low[k]:g}"
        )
    with np.errstate(invalid="ignore"):  # a table of hard zeros alone has no middle, and needs none
        shift = np.where((high > LARGEST_LOG) | (low < -LARGEST_LOG), (high + low) / 2, 0.0)
    return float(shift.sum()), np.exp(flat - np.repeat(shift, np.diff(start)))


def float_sizes(num_states: Integers, arity: Integers, variables: Integers) -> Floats:
    """Count the values of each factor's table, as floats: what a file claims may be beyond any whole number."""
    sizes = np.ones(len(arity))
    with np.errstate(over="ignore"):
        np.multiply.at(sizes, np.repeat(np.arange(len(arity)), arity), num_states[variables].astype(np.float64))
    return sizes


def format_numbers(values: Floats) -> list[str]:
    """Format numbers with all their digits, and without an exponent unless they are very large or small."""
    texts = list(map(repr, values.tolist()))
    plain_range = (values >= SMALLEST_PLAIN) & (values <= LARGEST_PLAIN)
    for k in np.flatnonzero(((values < 1e-4) | (values >= 1e16)) & plain_range):
        texts[k] = np.format_float_positional(values[k], trim="0")
    return texts


def count(size: float, one: str = "value", several: str | None = None) -> str:
    """Format a number of things that a file claims, however large."""
    return f"{size:{'.0f' if size < 1e15 else '.3g'}} {one if size == 1 else several or one + 's'}"


def check_scopes(tokens: Tokens, place: Integers, arity: Integers, variables: Floats) -> None:
    """Refuse a variable that is twice in a scope; `place` is where the scopes begin."""
    first = first_again(arity, variables)
    if first is not None:
        f = piece_of(offsets(arity), first)
        at = int(place[f] + first - offsets(arity)[f])
        wanted = {2: "two", 3: "three"}.get(int(arity[f]), str(arity[f]))
        tokens.fail(at, f"expected {wanted} different variables, found {variables[first]:.0f} twice", f)


def first_again(arity: Integers, variables: Floats | Integers) -> int | None:
    """Find the place of the first variable, of scopes laid end to end, that its scope has a second time."""
    if arity.max(initial=0) < 2:
        return None
    factor = np.repeat(np.arange(len(arity), dtype=np.int32 if len(arity) < 2**31 else np.int64), arity)
    order = np.lexsort((variables, factor))
    # (sorted by factor, as it was)
    twice = np.flatnonzero((factor[1:] == factor[:-1]) & (np.diff(variables[order]) == 0))
    return int(order[twice + 1].min()) if twice.size else None


def are_potentials(values: Floats) -> bool:
    """Whether all values are finite and none is negative."""
    return bool(values.min(initial=0.0) >= 0 and values.max(initial=0.0) < np.inf)


def check_values(tokens: Tokens, place: Integers, values: Floats, start: Integers) -> None:
    """Refuse values that are no potentials; `place` is where they stand, and the tables begin at `start`."""
    wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if wrong.size:
        k = int(wrong[0])
        tokens.refuse(int(place[k]), "a potential, finite and not negative", piece_of(start, k))


def refuse_zero(tokens: Tokens, at: int, factor: int) -> NoReturn:
    """Refuse a factor over no variables that is 0, at `numbers[at]`."""
    tokens.fail(at, "expected a constant above 0, found 0: every configuration would have probability zero", factor)


def check_states(tokens: Tokens, num_states: Integers, at: int | None = None) -> None:
    """Refuse more states than a file of this size can have a use for."""
    limit = len(tokens.numbers) + FREE_STATES
    total = num_states.sum(dtype=np.float64)
    if total > limit:
        i = int(num_states.argmax())
        largest = f"variable {i} has {num_states[i]}"
        tokens.fail(
            0 if at is None else at + i,
            f"expected at most {limit} states in all in a file of this size, found {total:.0f} ({largest})",
        )
