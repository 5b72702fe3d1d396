"""What runs in a process of its own: a count, a refutation or a program, none of which can be interrupted.

Run as a file, with a folder as its argument: nothing of clampz is imported, so that it starts at once.  The folder
holds `task.json` and the arrays that it is about; `answer` is there in the end, if there is one.
"""

import ctypes
import json
import os
import signal
import sys
from array import array
from pathlib import Path
from typing import Any

DIE_WITH_PARENT = 1  # prctl's number of it


def main(folder: Path) -> None:
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    hold(task["memory"], task["file"], task["parent"])
    sys.path[:] = task["path"]
    if task["work"] == "run":
        os.chdir(folder)
        os.execv(task["command"][0], task["command"])
    clauses = cut(read(folder / "literals", "i"))
    answer = {"count": counts, "refute": refuted}[task["work"]](task, folder, clauses)
    (folder / "answer").write_text(answer, encoding="utf-8")


def hold(memory: int, file: int, parent: int) -> None:
    """Take no more memory than this, write no larger file, pay no heed to Ctrl-C (who started this does), and end with
    who did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass  # not on this system
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("nobody is waiting")


def read(path: Path, kind: str) -> "array[Any]":
    numbers = array(kind)
    numbers.frombytes(path.read_bytes())
    return numbers


def cut(literals: "array[int]") -> list[list[int]]:
    """The clauses, each of which ends with a zero."""
    clauses: list[list[int]] = [[]]
    for literal in literals:
        if literal:
            clauses[-1].append(literal)
        else:
            clauses.append([])
    return clauses[:-1]


def counts(task: dict[str, Any], folder: Path, clauses: list[list[int]]) -> str:
    """The weighted count under each of the literals, or of all where that is 0: floats, by Ganak."""
    import pyganak

    weights = read(folder / "weights", "d")
    answers = []
    for literal in task["literals"]:
        counter = pyganak.WeightedCounter(seed=task["seed"])
        counter.new_vars(len(weights) // 2)
        counter.add_clauses(clauses)
        for boolean, (weight, negated) in enumerate(zip(weights[::2], weights[1::2], strict=True), start=1):
            counter.set_lit_weight(boolean, weight)
            counter.set_lit_weight(-boolean, negated)
        if literal:
            counter.add_clause([literal])
        answers.append(counter.count().hex())
    return " ".join(answers)


def refuted(task: dict[str, Any], folder: Path, clauses: list[list[int]]) -> str:
    """Whether no assignment satisfies the clauses, by CaDiCaL."""
    from pysat.solvers import Solver

    with Solver(name="cadical153", bootstrap_with=clauses) as solver:
        return "no" if solver.solve() else "yes"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
