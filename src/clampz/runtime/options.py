"""Options: those that every method shares, how options are checked and changed, and how memory is given: bytes, or text
such as "2GB"."""

import ctypes
import inspect
import math
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, Self, TypedDict, TypeGuard, TypeVar, Unpack, get_args, get_origin

import numpy as np

from clampz.errors import OptionError, shown, unknown_name

P = ParamSpec("P")
R = TypeVar("R")

# Share of the machine's free memory that is used without asking.
MEMORY_SHARE = 0.5
# Bytes that are used without even looking at what is free.
SMALL_BYTES = 64 * 2**20
# What is taken to be free where nobody says it.
UNKNOWN_BYTES = 2**32
UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30}


@dataclass(frozen=True, kw_only=True)
class OptionsBase:
    """Options that are changed by making new ones."""

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """These options with some of them changed; an unknown name is refused with the nearest ones."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise unknown_name("option", name, known, most=1)
        try:
            return replace(self, **changes)
        except TypeError as error:
            raise OptionError(f"options {changes!r}: {error}") from None

    @classmethod
    def chosen(cls, options: Self | None, changes: Mapping[str, Any]) -> Self:
        """The options of a call: those given, or the defaults, with some of them changed."""
        check_option(options is None or isinstance(options, cls), "options", f"None or {cls.__name__}", options)
        return (cls() if options is None else options).with_changes(changes)


# The tolerance of results whose differences matter.
FINE = 1e-9


class OptionKeywords(TypedDict, total=False):
    """The fields of `Options`, as a call takes them by name."""

    tol: float
    max_iter: int
    time: float
    threads: int | None
    memory: int | str | None


@dataclass(frozen=True, kw_only=True)
class Options(OptionsBase):
    """Limits that every approximation takes.

    Attributes
    ----------
    tol
        In nats: stop when what is left to gain is below it (each method says what it measures).
    max_iter
        Sweeps over the model at most.
    time
        Seconds at most.
    threads
        Threads to use; None for all cores.  No result depends on it.
    memory
        What it may use, in bytes or as text such as "2GB"; a model for which that is not enough is refused before
        anything is allocated.  None for half of what is free.
    """

    tol: float = 1e-6
    max_iter: int = 10_000
    time: float = math.inf
    threads: int | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        check_option(is_number(self.tol) and self.tol >= 0, "tol", "a number of nats >= 0", self.tol)
        check_whole("max_iter", self.max_iter, 1)
        check_option(is_number(self.time) and self.time >= 0, "time", "seconds >= 0", self.time)
        check_whole("threads", self.threads, 1, or_none=True)
        if self.memory is not None:
            as_bytes(self.memory)

    @property
    def num_threads(self) -> int:
        return self.threads or os.cpu_count() or 1

    def in_branches(self) -> Self:
        """For sub-models that also start from the solution of the model they come from."""
        return self

    def finely(self) -> Self:
        """For results that are told apart by small differences."""
        return replace(self, tol=min(self.tol, FINE))


def knows_its_options(call: Callable[P, R]) -> Callable[P, R]:
    """A call that refuses an option it does not have, or one without a name, and says which it has: Python's own error
    names none of them."""
    parameters = with_keywords(call).parameters.values()
    known = [each.name for each in parameters if each.default is not each.empty]
    taken = {each.name for each in parameters}
    named = takes_names(call)

    @wraps(named)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in taken:
                raise unknown_name("option", name, known, most=1)
        return named(*args, **options)

    return checked


def takes_names(call: Callable[P, R]) -> Callable[P, R]:
    """A call that says what may be given without a name, and how the others are."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = with_keywords(call)
    unnamed = [each.name for each in signature.parameters.values() if each.kind in kinds]

    @wraps(call)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        if len(args) > len(unnamed):
            raise OptionError(
                f"{call.__name__}: expected {' and '.join(unnamed)} without a name, found {len(args)} arguments; the "
                "others are named, as in time=10"
            )
        return call(*args, **options)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


def with_keywords(call: Callable[..., object]) -> inspect.Signature:
    """A call's signature with every option of its `Unpack[TypedDict]` by name.

    Defaults are those of the class that `options` takes; `...` stands where that does not have them all.
    """
    signature = inspect.signature(call)
    parameters = list(signature.parameters.values())
    for each in parameters:
        if each.kind is each.VAR_KEYWORD and get_origin(each.annotation) is Unpack:
            (keywords,) = get_args(each.annotation)
            whole = get_args(signature.parameters["options"].annotation) if "options" in signature.parameters else ()
            defaults = {field.name: field.default for kind in whole if is_dataclass(kind) for field in fields(kind)}
            types = keywords.__annotations__
            defaults = defaults if defaults.keys() >= types.keys() else dict.fromkeys(types, ...)
            parameters[-1:] = [
                inspect.Parameter(name, each.KEYWORD_ONLY, default=defaults[name], annotation=types[name])
                for name in types
            ]
    return signature.replace(parameters=parameters)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number of any integer type, and no truth value."""
    # (first what it mostly is: to ask an abstract class takes ten times as long, and evidence may be of millions)
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: object) -> bool:
    """Whether this is a real number of any type, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_option(holds: bool, name: str, expected: str, found: object) -> None:
    if not holds:
        raise OptionError(f"{name}: expected {expected}, found {shown(found)}")


def is_one_of(found: object, known: Collection[str]) -> bool:
    """Whether this is one of these names; it may be anything, an array too."""
    return isinstance(found, str) and found in known


def check_flag(name: str, found: object) -> None:
    check_option(isinstance(found, bool | np.bool_), name, "True or False", found)


def check_name(what: str, found: object, known: Collection[str]) -> None:
    """Refuse what is none of these names, and say which are nearest."""
    if not is_one_of(found, known):
        raise unknown_name(what, found, known)


def check_whole(name: str, found: object, least: int, *, most: float = math.inf, or_none: bool = False) -> None:
    holds = (or_none and found is None) or (is_whole(found) and least <= found <= most)
    expected = f"a whole number {f'>= {least}' if math.isinf(most) else f'from {least} to {most:,}'}"
    check_option(holds, name, f"{'None or ' if or_none else ''}{expected}", found)


def as_bytes(memory: int | str) -> int:
    """A number of bytes, also written as "512MB" or "2GB".

    >>> as_bytes("2GB")
    2000000000
    """
    text = str(memory).strip().upper()
    number = text.rstrip("KMGTIB ")
    try:
        size = float(number) * UNITS[text[len(number) :].strip()]
    except (KeyError, ValueError):
        size = -1.0
    valid = size >= 0 and not isinstance(memory, bool) and math.isfinite(size)
    check_option(valid, "memory", 'bytes, or text such as "2GB"', memory)
    return int(size)


def bytes_in_words(number: float) -> str:
    """A number of bytes for people.

    >>> bytes_in_words(84_248), bytes_in_words(2.1e10), bytes_in_words(2.0**80)
    ('0.084 MB', '21 GB', '1.2e+24 bytes')
    """
    if number >= 1e16:
        return f"{number:.2g} bytes"
    unit = next((unit for unit in ("TB", "GB") if number >= UNITS[unit]), "MB")
    size = number / UNITS[unit]
    return f"{size:.2g} {unit}" if size < 10 else f"{size:,.0f} {unit}"


def fits_into(memory: int | str | None, num_bytes: int) -> bool:
    """Return whether a run may take this many bytes; a few are taken without even looking at what is free."""
    return (memory is None and num_bytes <= SMALL_BYTES) or num_bytes <= memory_allowed(memory)


def memory_allowed(memory: int | str | None) -> int:
    """Bytes that a run may take: `memory`, or a share of what the machine (or its container) has free."""
    return int(MEMORY_SHARE * max(_free_bytes(), 0)) if memory is None else as_bytes(memory)


def _free_bytes() -> int:
    """What the machine, or its container, has free."""
    try:
        said = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return _free_elsewhere()
    free = next((int(line.split()[1]) * 1024 for line in said if line.startswith("MemAvailable:")), UNKNOWN_BYTES)
    try:
        limit, used = (
            Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current")
        )
    except OSError:
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


def _free_elsewhere() -> int:
    """Return the free memory where it is not Linux, or half of all memory where no system call tells."""
    if sys.platform == "win32":
        status = (ctypes.c_uint64 * 8)(64)  # of MEMORYSTATUSEX: its size, then at 2 what is free
        return int(status[2]) if ctypes.windll.kernel32.GlobalMemoryStatusEx(status) else UNKNOWN_BYTES
    for name, share in (("SC_AVPHYS_PAGES", 1.0), ("SC_PHYS_PAGES", 0.5)):
        if name in getattr(os, "sysconf_names", {}):
            return int(share * os.sysconf(name) * os.sysconf("SC_PAGE_SIZE"))
    return UNKNOWN_BYTES
