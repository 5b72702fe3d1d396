"""Programs: work that cannot be interrupted, in processes of its own that are ended when nobody waits for them.

Each has a folder of its own for what goes in and what comes out, so that nobody waits for a pipe.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from clampz.runtime.budget import LOOK, Budget
from clampz.runtime.options import bytes_in_words

CHILD = Path(__file__).with_name("child_process.py")
# Bytes at the end of what a program says before it dies.
LAST_WORDS = 2000
# Bytes of address space beside what a program may use: dsharp reserves more than a gigabyte, of which it uses little.
RESERVED_BYTES = 1_500_000_000
# Bytes of memory that it takes to read a byte of what a program has written (a circuit's numbers, some times over).
MEMORY_PER_FILE_BYTE = 16
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Failed(Exception):  # noqa: N818 (no error, and seen by nobody outside)
    """Says why a program has no answer."""


class Program:
    """A process at work, for the length of a `with`: it is ended, if it has not ended itself, and never left behind.

    Parameters
    ----------
    name
        What messages call it.
    task
        What it is to do (see `child_process`).
    arrays
        What that is about, by the names of the files that hold them.
    memory
        Bytes that it may take.
    """

    def __init__(self, name: str, task: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], memory: int) -> None:
        self.name = name
        self._memory = memory
        self._is_too_large = False
        self._ends = ExitStack()
        if not sys.executable or getattr(sys, "frozen", False):
            raise Failed(f"{name} could not be started: there is no Python to do it")
        try:
            self.folder = Path(self._ends.enter_context(tempfile.TemporaryDirectory(prefix="clampz-")))
            for file, array in arrays.items():
                array.tofile(self.folder / file)
            limits = {"memory": memory + RESERVED_BYTES, "file": memory // MEMORY_PER_FILE_BYTE}
            told = {**task, **limits, "parent": os.getpid(), "path": [str(place) for place in sys.path]}
            (self.folder / "task.json").write_text(json.dumps(told), encoding="utf-8")
            said = self._ends.enter_context((self.folder / "said").open("wb"))
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(CHILD), str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
        except OSError as error:
            self._ends.close()
            raise Failed(f"{name} could not be started: {error}") from None
        self._ends.callback(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def done(self) -> bool:
        """Whether it has ended; it has, from when it is seen with more memory than it may take."""
        if self._process.poll() is None and self._resident() > self._memory:
            self._is_too_large = True
            self._end()
        return self._process.poll() is not None

    def _resident(self) -> int:
        """Bytes that it holds, where the system tells."""
        try:
            said = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii")
            return PAGE * int(said.split()[1])
        except (OSError, IndexError):
            return 0

    def answer(self, file: str = "answer") -> bytes:
        """What a program that is done has written; raises Failed if it came to nothing."""
        try:
            if self._process.returncode == 0:
                return (self.folder / file).read_bytes()
            said = (self.folder / "said").read_bytes()[-LAST_WORDS:].decode(errors="replace").strip()
        except OSError:
            raise Failed(f"{self.name} ended without an answer") from None
        if self._is_too_large or "MemoryError" in said or "bad_alloc" in said:
            raise Failed(f"{self.name} needs more than {bytes_in_words(self._memory)} of memory")
        if self._process.returncode < 0:
            raise Failed(f"{self.name} was killed ({signal.Signals(-self._process.returncode).name})")
        raise Failed(f"{self.name} failed: {said.splitlines()[-1] if said else self._process.returncode}")


def wait_for(programs: Sequence[Program], budget: Budget) -> list[Program]:
    """Return the programs that are done, as soon as one is; none where the budget ends first."""
    while not budget.must_stop():
        if done := [program for program in programs if program.done()]:
            return done
        time.sleep(LOOK)
    return []
