"""How far a reader walks from a public call to the kernels that do its work: hops of bound, exact, clamp and sample.

    python benchmarks/walks.py [--quick] [--list]

A call is run on a fixed small model under a profile hook.  Each time a kernel is entered, the functions of clampz on
the stack, from the public call to the kernel, are a chain, and each step of a chain from one function to another is a
hop.  The walk of a call is all of its chains together: a hop counts once, however often it is taken.

- Functions that lead to no kernel (checks, options, words, results) are on no chain and cost nothing; so do functions
  of other libraries, and a function inside another is a part of that.
- A kernel is one hop, whatever it calls; compiled or not makes no difference.
- Another public method on the way (mean_field, trw, simplify, ...) is one hop as well: its walk is its own.
- Work that is handed to a thread is called by the function that hands it over.

The call is made once on another model before, so that nothing counts that is made once in a process.  `--list` prints
every hop.  Public names of earlier versions are known, so that PYTHONPATH may name the sources of one.
"""

import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from numba.core.registry import CPUDispatcher

import clampz as cz
from timing import Claim, alone, print_table

SOURCES = str(Path(cz.__file__).parent) + "/"
# Where kernels are; what compiles them, and takes the time of that, is none.
KERNELS, CLOCK = SOURCES + "_kernels/", SOURCES + "_kernels/jit.py"
# Public functions that are one hop where another call comes to them.
METHODS = ("bethe", "exact", "mean_field", "mini_buckets", "regions", "simplify", "trw")
TABLES = {"max_table" if hasattr(cz, "iter_bounds") else "limit": 64}

Function = tuple[str, str]
Chain = tuple[Function, ...]


def small(seed: int) -> cz.Model:
    """A mixed torus that is summed exactly at once."""
    return cz.generators.grid(5, 5, weights=(-6, 6), rng=seed)


def larger(seed: int) -> cz.Model:
    """A mixed torus that a search of twenty leaves does not close."""
    return cz.generators.grid(9, 9, weights=(-6, 6), rng=seed)


WALKS: dict[str, tuple[Callable[[Any], object], Callable[[int], cz.Model]]] = {
    "bound": (lambda model: cz.bound(model, gap=1e-6, threads=1), small),
    "exact": (lambda model: cz.exact(model, threads=1), small),
    "clamp": (lambda model: cz.clamp(model, "trw", k=2, select="maxW", threads=1), small),
    "sample": (lambda model: cz.sample(model, 100, threads=1, rng=0), small),
    "bound by search": (
        lambda model: cz.bound(model, gap=0.0, leaves=20, exact=False, time=120.0, threads=1, **TABLES),
        larger,
    ),
}


class Walk(NamedTuple):
    """The chains of one call."""

    chains: set[Chain]

    @property
    def hops(self) -> set[tuple[Function, Function]]:
        return {hop for chain in self.chains for hop in itertools.pairwise(chain)}

    @property
    def functions(self) -> set[Function]:
        return {function for chain in self.chains for function in chain}

    @property
    def hops_into_kernels(self) -> int:
        return sum(package(b) == "_kernels" for _, b in self.hops)

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @property
    def package_changes(self) -> int:
        """Hops from one package to another, those into kernels aside."""
        return sum(package(a) != package(b) != "_kernels" for a, b in self.hops)

    @property
    def deepest(self) -> int:
        return max(map(len, self.chains), default=1) - 1


def package(function: Function) -> str:
    """The folder of a function, or the module where that is in none."""
    return function[0].split("/")[0]


def function_of(code: CodeType) -> Function:
    """A function of clampz: its file, and the name of the outermost function it is a part of."""
    return code.co_filename.removeprefix(SOURCES), code.co_qualname.split(".<locals>")[0]


class Hook:
    """Keeps a chain for each kernel, or other method, that is entered."""

    def __init__(self, methods: set[CodeType]) -> None:
        self.methods, self.chains = methods, set[Chain]()
        self.handed_over = threading.local()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_back is not None and self.ends_at(frame.f_code):
            self.enter(frame.f_code, frame.f_back)  # (what Numba says of a kernel has nothing before it)

    def ends_at(self, code: CodeType) -> bool:
        """Whether a chain ends here: at another method, or at a kernel."""
        return code in self.methods or (code.co_filename.startswith(KERNELS) and code.co_filename != CLOCK)

    def enter(self, code: CodeType, frame: FrameType | None) -> None:
        """Keep the chain to what is entered, unless a kernel or another method has come before it."""
        before = self.stack(frame)
        if before is not None:
            self.chains.add(in_turn([*before, function_of(code)]))

    def stack(self, frame: FrameType | None) -> list[Function] | None:
        """Functions of clampz from the public call to a frame; None behind a kernel or another method."""
        found: list[Function] = []
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(SOURCES):
                if self.ends_at(code):
                    return None
                found.append(function_of(code))
            frame = frame.f_back
        before: list[Function] | None = getattr(self.handed_over, "stack", [])
        return None if before is None else [*before, *reversed(found)]

    def handing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that another thread calls as if its stack went on from here."""
        before = self.stack(sys._getframe(1))

        def call(*args: Any, **options: Any) -> Any:
            self.handed_over.stack = before
            try:
                return function(*args, **options)
            finally:
                self.handed_over.stack = []

        return call


def in_turn(stack: list[Function]) -> Chain:
    """A stack without steps from a function to a part of itself."""
    return tuple(one for k, one in enumerate(stack) if k == 0 or one != stack[k - 1])


def codes_of(found: object) -> Iterator[CodeType]:
    """What runs when something public is called, behind its decorators; of a method the function it is made of."""
    for one in (found, *getattr(found, "__dict__", {}).values()):
        function = inspect.unwrap(one) if callable(one) else None
        if hasattr(function, "__code__") and function.__code__.co_filename.startswith(SOURCES):
            yield function.__code__


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Show a hook every call of this thread and of those it starts; of a compiled kernel no frame knows its caller."""
    enter, submit, start = CPUDispatcher.__call__, ThreadPoolExecutor.submit, threading.Thread.__init__

    def entered(kernel: Any, *args: Any, **options: Any) -> Any:
        if kernel.py_func.__code__.co_filename.startswith(SOURCES):
            hook.enter(kernel.py_func.__code__, sys._getframe(1))
        return enter(kernel, *args, **options)

    def submitted(pool: Any, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        return submit(pool, hook.handing(function), *args, **options)

    def started(thread: Any, *args: Any, target: Callable[..., Any] | None = None, **options: Any) -> None:
        start(thread, *args, target=target and hook.handing(target), **options)

    with (
        patch.object(CPUDispatcher, "__call__", entered, create=True),
        patch.object(ThreadPoolExecutor, "submit", submitted),
        patch.object(threading.Thread, "__init__", started),
    ):
        threading.setprofile(hook)
        sys.setprofile(hook)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as its documentation has it


def walk(name: str) -> Walk:
    """The walk of one of the calls."""
    call, model = WALKS[name]
    call(model(1))
    methods = {code for each in METHODS if each != name for code in codes_of(getattr(cz, each, None))}
    hook, asked = Hook(methods), model(0)
    with hooked(hook):
        call(asked)
    return Walk(hook.chains)


def main(quick: bool) -> list[Claim]:
    rows, claims = [], []
    for name in list(WALKS)[: 4 if quick else None]:
        found = walk(name)
        counted = len(found.hops), found.hops_into_kernels, len(found.functions), len(found.files)
        rows.append([name, *counted, found.package_changes, found.deepest])
        claims.append(Claim(f"walk of {name}: hops", float(len(found.hops))))
        if "--list" in sys.argv:
            print(name, *sorted(f"  {':'.join(a)} -> {':'.join(b)}" for a, b in found.hops), sep="\n")
    header = ["call", "hops", "into kernels", "functions", "files", "changes of package", "deepest stack"]
    print_table("From the public call to its kernels", header, rows)
    return claims


if __name__ == "__main__":
    alone(main)
