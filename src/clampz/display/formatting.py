"""Format numbers, bounds, intervals and names, in one way in messages, tables and pictures."""

import math
from collections.abc import Sequence
from typing import Literal

Bound = Literal["lower", "upper", "exact"]

# Methods as a sentence names them.
TITLES = {"exact": "exact", "mean_field": "mean field", "bethe": "Bethe", "trw": "TRW", "mini_buckets": "mini-buckets"}
# Numbers from here on are written with a power of ten.
MOST_IN_FULL = 1e9
# Decimals: of bounds at least, and those that doubles of a few hundred have.
DIGITS, MOST_DECIMALS = 6, 12
# Kinds of a value of log Z.
KINDS: dict[Bound | None, str] = {"lower": "lower bound", "upper": "upper bound", "exact": "exact", None: "estimate"}


def title(method: str) -> str:
    """Return the name of a method as a sentence has it."""
    return TITLES.get(method, method.replace("_", " "))


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun, singular or plural.

    >>> counted(1, "leaf", "leaves"), counted(1200, "leaf", "leaves"), counted(2, "lane")
    ('1 leaf', '1,200 leaves', '2 lanes')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def round_outward(value: float, bound: Bound | None, digits: int) -> str:
    """Round a number to decimals so that a bound stays one: lower bounds down, upper bounds up.

    >>> round_outward(1.236, "lower", 2), round_outward(1.234, "upper", 2), round_outward(1.234, None, 2)
    ('1.23', '1.24', '1.23')
    """
    if math.isfinite(value) and bound in ("lower", "upper"):
        scaled = value * 10**digits
        value = (math.floor(scaled) if bound == "lower" else math.ceil(scaled)) / 10**digits
    return f"{value:z.{digits}f}"  # (z: no negative zero)


def interval_outward(lower: float, upper: float, digits: int) -> tuple[str, str]:
    """Round both ends of an interval outwards.

    >>> interval_outward(1.236, 1.234, 2)
    ('1.23', '1.24')
    """
    return round_outward(lower, "lower", digits), round_outward(upper, "upper", digits)


def valued(value: float, bound: Bound | None) -> str:
    """Return a value of log Z with its kind.

    >>> valued(1.5, "upper"), valued(1.5, None)
    ('1.500000 (upper bound)', '1.500000 (no bound)')
    """
    return f"{round_outward(value, bound, DIGITS)} ({KINDS[bound] if bound else 'no bound'})"


def ran(seconds: float, stopped_by: str) -> str:
    """Return how long a run took, and why it ended.

    >>> ran(1.234, "gap"), ran(1.234, "tol")
    ('1.2 s, stopped by gap', '1.2 s')
    """
    return f"{seconds:.2g} s" + ("" if stopped_by == "tol" else f", stopped by {stopped_by}")


def digits_between(lower: float, upper: float) -> int:
    """Return the decimals that show two digits of the gap between two ends, six at least, if doubles have them.

    >>> digits_between(500.0, 510.0), digits_between(500.0, 500.0 + 2e-9), digits_between(-math.inf, 0.0)
    (6, 10, 6)
    """
    gap = upper - lower
    if not 0 < gap < math.inf:
        return DIGITS
    known = 14 - math.ceil(math.log10(max(abs(lower), abs(upper), 1.0)))
    return max(DIGITS, min(1 - math.floor(math.log10(gap)), known, MOST_DECIMALS))


def within(what: str, lower: float, upper: float, digits: int = 3) -> str:
    """Return the interval that a value is in for certain, rounded outwards to few digits.

    >>> within("log Z", 1.23456, 2.34567)
    'log Z in [1.234, 2.346]'
    """
    return f"{what} in [{', '.join(interval_outward(lower, upper, digits))}]"


def rounded_up(gap: float) -> str:
    """Round a gap up to three digits.

    >>> rounded_up(0.0120401), rounded_up(12.0), rounded_up(0.0), rounded_up(1054.8)
    ('0.0121', '12', '0', '1,060')
    """
    if not 0 < gap < math.inf:
        return f"{gap:g}"
    unit = 10.0 ** (math.floor(math.log10(gap)) - 2)
    value = math.ceil(gap / unit * (1 - 1e-12)) * unit
    return f"{value:,.0f}" if 1000 <= value < MOST_IN_FULL else f"{value:.3g}"


def proven(lower: float, upper: float, what: str = "log Z", digits: int = DIGITS) -> str:
    """Return the inequality that two ends prove.

    >>> proven(1.0, 2.5), proven(-math.inf, 2.5)
    ('1.000000 <= log Z <= 2.500000', 'log Z <= 2.500000')
    """
    low, high = interval_outward(lower, upper, digits)
    if lower == upper and math.isinf(lower):
        return f"{what} = {lower}"
    if math.isinf(lower) and math.isinf(upper):
        return "nothing: this method has no bounds here"
    if math.isinf(lower) or math.isinf(upper):
        return f"{what} <= {high}" if math.isinf(lower) else f"{low} <= {what}"
    return f"{low} <= {what} <= {high}"


def digits_of_error(error: float) -> int:
    """Return the decimals that show two digits of a standard error, six where it is 0.

    >>> digits_of_error(0.0034), digits_of_error(25.0), digits_of_error(0.0)
    (4, 0, 6)
    """
    return max(0, min(1 - math.floor(math.log10(error)), MOST_DECIMALS)) if error > 0.0 else 6


def with_error(value: float, error: float) -> str:
    """Return an estimate with its standard error, to the decimals of `digits_of_error`.

    >>> with_error(586.56412, 0.0034)
    '586.5641 ± 0.0034'
    """
    digits = digits_of_error(error)
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def as_interval(ends: tuple[float, float], error: float) -> str:
    """Return an interval rounded outwards, to the decimals of `digits_of_error`.

    >>> as_interval((586.54587, 586.58444), 0.0034)
    '[586.5458, 586.5845]'
    """
    return f"[{', '.join(interval_outward(*ends, digits_of_error(error)))}]"


def name_of(names: Sequence[str] | None, variable: int) -> str:
    """Return the name of a variable where the model has names, else its number."""
    return names[variable] if names is not None else str(variable)


def some(names: Sequence[object], limit: int = 8) -> str:
    """Return the first few names, for a message."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
