"""The ways a kernel is compiled, so that every kernel says only which of them it is, and the time that compiling
takes, which is no part of any run.

Numba keeps compiled kernels on disk and compiles again when a function's own file has changed, but not when a file it
inlines from has, and installers may give the files of all versions one time stamp.  Nor does it tell kernels that look
at every index (NUMBA_BOUNDSCHECK=1) from those that do not.  So the cache has a folder for each state of all kernels
together.
"""

import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

from numba import config, njit, types
from numba.core import event

# Full `fastmath` would break the polynomial exp and log of simd_math (reassociation cancels their rounding trick) and
# turn infinities into garbage; these two flags change neither.  Reciprocals for divisions ("arcp") would be safe for
# both, but vector and scalar loops then round differently.
SAFE_MATH = {"contract", "nsz"}
# Folders of compiled kernels kept: this version's, and those of a few others that may be in use.
KEPT_STATES = 4


def _cache_folder() -> str:
    """Where compiled kernels are kept: in the user's NUMBA_CACHE_DIR, else beside the kernels, else (read-only
    installs) in the user's cache."""
    here = Path(__file__).parent
    sources = [path.read_bytes() for path in sorted(here.glob("*.py"))]
    settings: Any = config
    checked = b"checked" if settings.BOUNDSCHECK else b""
    state = hashlib.sha256(b"".join([*sources, checked])).hexdigest()[:16]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = (
        [Path(chosen)]
        if chosen
        else [here / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clampz"]
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
    """Compile a kernel: cached on disk, without the GIL, and with C's division.

    Python's division raises on zero, and the branch for it keeps LLVM from vectorising the loop around it.
    """
    return _compiled(function, SAFE_MATH)


def kernel_to_the_letter(function: Any) -> Any:
    """Compile a kernel that relies on every product and every sum being rounded by itself."""
    return _compiled(function, set())


def _compiled(function: Any, fastmath: set[str]) -> Any:
    # where the cache goes is decided when a function is decorated; other packages keep their own setting
    settings: Any = config
    before, settings.CACHE_DIR = settings.CACHE_DIR, CACHE_FOLDER
    try:
        return _for_any_number(njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function))
    finally:
        settings.CACHE_DIR = before


def _for_any_number(compiled: Any) -> Any:
    """Have a function take whole numbers as int64, whatever they are in the kernel that calls it.

    To Numba a constant is a type of its own, and so is an entry of int32s, and each would be compiled for: where models
    are simplified, twice the functions in half as long again.
    """
    settings: Any = config
    if settings.DISABLE_JIT:
        return compiled
    template = compiled.get_call_template

    def of_numbers(kinds: Any, by_name: Any) -> Any:
        return template(tuple(map(_as_number, kinds)), {name: _as_number(kind) for name, kind in by_name.items()})

    compiled.get_call_template = of_numbers
    return compiled


def _as_number(kind: Any) -> Any:
    return types.int64 if isinstance(kind, types.IntegerLiteral) or kind == types.int32 else kind


def part(function: Any) -> Any:
    """Compile a part of a kernel that is too large to be inlined.

    Only kernels call it: a way in from Python, for a tuple of arrays, takes longer to compile than most functions do.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _for_any_number(njit(nogil=True, error_model="numpy", fastmath=SAFE_MATH, **options)(function))


def inline(function: Any) -> Any:
    """Compile a scalar function that disappears into the loops of the kernels that call it.

    LLVM is told to: left to its own judgement, it does not, and the loops stay scalar.  Inlining by Numba does the same
    in twice the compile time.
    """
    return njit(forceinline=True, error_model="numpy", fastmath={"contract"})(function)


class Compiling(event.Listener):
    """Seconds that kernels have been compiled for; several threads may wait for the same one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._since = self._total = 0.0

    @property
    def seconds(self) -> float:
        """Since the process began, with what is under way."""
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
            self._depth += 1

    def on_end(self, event: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._total += perf_counter() - self._since


# With kernels that are only loaded from disk, and without them: those are new, as after an installation.
compiling, compiling_anew = Compiling(), Compiling()
event.register("numba:compiler_lock", compiling)
event.register("numba:compile", compiling_anew)
