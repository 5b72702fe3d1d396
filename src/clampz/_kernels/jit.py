"""How kernels are compiled, cached on disk, and kept off the clock.

Numba keeps compiled kernels on disk and compiles again when a function's own file has changed, but not when a file it
inlines from has, and installers may give the files of all versions one time stamp.  Nor does it tell kernels that look
at every index (NUMBA_BOUNDSCHECK=1) from those that do not.  So the cache has a folder for each state of all kernels
together.  A kernel is compiled by one process at a time; others that want it wait, and find it on disk.
"""

import gc
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from numba import config, njit, types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # no such locks on Windows: several processes may compile the same kernel there
    fcntl = None  # type: ignore[assignment]

SETTINGS: Any = config

# Full `fastmath` would break the polynomial exp and log of simd_math (reassociation cancels their rounding trick) and
# turn infinities into garbage; these two flags change neither.  Reciprocals for divisions ("arcp") would be safe for
# both, but vector and scalar loops then round differently.
SAFE_MATH = {"contract", "nsz"}
# Without Numba's count of who holds an array.
UNCOUNTED = {"_nrt": False}
# Folders of compiled kernels kept: this version's, and those of a few others that may be in use.
KEPT_STATES = 4
# Whether kernels are compiled at all: with NUMBA_DISABLE_JIT=1 they are the Python they are written in.
COMPILES = not SETTINGS.DISABLE_JIT
# The event of waiting for a kernel that another process compiles; seconds between looks whether it is done, and until
# it is compiled here all the same.
WAITING, LOOK, PATIENCE = "clampz:waiting", 0.02, 120.0


def _cache_folder() -> str:
    """Choose where compiled kernels are kept: NUMBA_CACHE_DIR, else beside the kernels, else (read-only installs) the
    user's cache."""
    kernels = Path(__file__).parent
    sources = [path.read_bytes() for path in sorted(kernels.rglob("*.py"))]
    checked = b"checked" if SETTINGS.BOUNDSCHECK else b""
    state = hashlib.sha256(b"".join([*sources, checked])).hexdigest()[:16]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = (
        [Path(chosen)]
        if chosen
        else [kernels / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clampz"]
    )
    for place in places:
        folder = place / f"kernels-{state}"
        try:
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
                _forget_old_states(place)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return tempfile.mkdtemp(prefix="clampz-")


def _forget_old_states(place: Path) -> None:
    """Remove all but the newest few folders of compiled kernels."""
    folders = sorted(place.glob("kernels-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_STATES:]:
        shutil.rmtree(folder, ignore_errors=True)


CACHE_FOLDER = _cache_folder()


def kernel(function: Any) -> Any:
    """Compile a kernel: cached on disk, without the GIL, and with C's division. Python's division raises on zero, and
    the branch for it keeps LLVM from vectorising the loop around it."""
    return _cached(function, SAFE_MATH)


def kernel_in_place(function: Any) -> Any:
    """Compile a kernel that writes into what it is given and makes no arrays. Array references need no counting then. A
    slice is counted when it is made and when it is left, by instructions that other cores take part in. That was half
    to nine tenths of the time of all work on small tables."""
    return _cached(function, SAFE_MATH, **UNCOUNTED)


def part(function: Any) -> Any:
    """Compile a part of a kernel that is too large to be inlined. Only kernels call it: a way in from Python, for a
    tuple of arrays, takes longer to compile than most functions do."""
    return _linked(function, SAFE_MATH)


def part_in_place(function: Any) -> Any:
    """Compile a part of a kernel that makes no arrays."""
    return _linked(function, SAFE_MATH, **UNCOUNTED)


def part_strict(function: Any) -> Any:
    """Compile a part of a kernel that relies on every product and every sum being rounded by itself."""
    return _linked(function, set())


def part_with(*liberties: str) -> Any:
    """Compile a part of a kernel with further liberties for the compiler; it makes no arrays. Sums and maxima vectorise
    only where they may be reordered, and some where nan may be left aside."""
    return lambda function: _linked(function, {*SAFE_MATH, *liberties}, **UNCOUNTED)


def inline_with(*liberties: str) -> Any:
    """Compile a function that disappears into its callers, with further liberties for the compiler."""
    return lambda function: _linked(function, {*SAFE_MATH, *liberties}, forceinline=True, **UNCOUNTED)


def inline(function: Any) -> Any:
    """Compile a function that disappears into the loops of the kernels that call it, and makes no arrays. LLVM is told
    to: left to its own judgement, it does not, and the loops stay scalar. Inlining by Numba does the same in twice the
    compile time."""
    return _linked(function, {"contract"}, forceinline=True, **UNCOUNTED)


def _cached(function: Any, fastmath: set[str], **options: Any) -> Any:
    # where the cache goes is decided when a function is decorated; other packages keep their own setting
    before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, CACHE_FOLDER
    try:
        return _one_process_at_a_time(_compiled(function, fastmath, cache=True, **options))
    finally:
        SETTINGS.CACHE_DIR = before


def _linked(function: Any, fastmath: set[str], **options: Any) -> Any:
    return _compiled(function, fastmath, no_cpython_wrapper=True, **options)


def _compiled(function: Any, fastmath: set[str], **options: Any) -> Any:
    """Compile for whole numbers as int64, whatever they are in the calling kernel. To Numba a constant is a type of its
    own, and so is an entry of int32s. Each would be compiled for: in the presolve, twice the functions in half as long
    again. A way in from C would be for nobody."""
    options["no_cfunc_wrapper"] = True
    compiled = njit(nogil=True, error_model="numpy", fastmath=fastmath, **options)(function)
    if not COMPILES:
        return compiled
    template = compiled.get_call_template

    def of_numbers(kinds: Any, by_name: Any) -> Any:
        return template(tuple(map(_as_number, kinds)), {name: _as_number(kind) for name, kind in by_name.items()})

    compiled.get_call_template = of_numbers
    return compiled


def _as_number(kind: Any) -> Any:
    return types.int64 if isinstance(kind, types.IntegerLiteral) or kind == types.int32 else kind


def _one_process_at_a_time(compiled: Any) -> Any:
    """Compile a kernel, or load it from disk, while no other process compiles it. The compiler's own lock comes first:
    threads of this process wait for each other there."""
    if not COMPILES or fcntl is None:
        return compiled
    function, compile_now = compiled.py_func, compiled.compile
    path = Path(CACHE_FOLDER) / f"{function.__module__}.{function.__name__}.lock"

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock, _turn(path):
            return compile_now(signature)

    compiled.compile = compile_in_turn
    return compiled


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Hold a file lock; without one where files cannot be locked, or its holder does not finish in time."""
    with ExitStack() as held:
        with suppress(OSError):
            file = held.enter_context(path.open("ab"))
            if not _locked(file):
                with event.trigger_event(WAITING):
                    until = perf_counter() + PATIENCE
                    while not _locked(file) and perf_counter() < until:
                        sleep(LOOK)
        yield


def _locked(file: Any) -> bool:
    """Take the lock if it is free, and hold it until the file is closed."""
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


class Compiling(event.Listener):
    """The time that compiling kernels has taken; several threads may wait for the same one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._since = self._total = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds since the process began, with what is under way."""
        with self._lock:
            return self._total + (perf_counter() - self._since if self._depth else 0.0)

    @property
    def now(self) -> bool:
        """Whether a kernel is being compiled."""
        return self._depth > 0

    def on_start(self, event: object) -> None:
        with self._lock:
            if not self._depth:
                self._since = perf_counter()
                self._begin()
            self._depth += 1

    def on_end(self, event: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._total += perf_counter() - self._since
                self._end()

    def _begin(self) -> None:
        """React to the beginning of compilation."""

    def _end(self) -> None:
        """React to its end."""


class CompilingNew(Compiling):
    """The time that compiling kernels which are not on disk yet has taken. The garbage collector rests meanwhile: it
    would go through all that the compiler has, a sixth of the time in all."""

    def _begin(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def _end(self) -> None:
        if self._collects:
            gc.enable()


# With kernels that are only loaded from disk, and without them: those are new, as after an installation.
compiling, compiling_anew = Compiling(), CompilingNew()
event.register("numba:compiler_lock", compiling)
event.register("numba:compile", compiling_anew)
event.register(WAITING, compiling_anew)
