"""What the benchmarks share: runs that take turns, tables, claims, peers and files that may be missing, and
measurements in a process of their own.

A time says little about another machine, or about this one under load.  So every benchmark measures what it compares in
one run, turn by turn, and reports the ratio of the quickest times: load only ever adds.  Of ratios on several models
the worst is a claim of its own, under the name of its model: a sum hides it.
"""

import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "reference"
# Names the folder of UAI files that benchmarks take models from; `run.py --uai` sets it.
UAI_FOLDER = "CLAMPZ_UAI"

Runs = dict[str, Callable[[], Any]]


class MissingError(Exception):
    """There is nothing to compare with here: a peer, or a folder of files."""


class Claim(NamedTuple):
    """A ratio that was measured, and the most (or the least, as `sense` says) it should be."""

    what: str
    measured: float
    sense: str = ""
    target: float = float("nan")

    @property
    def verdict(self) -> str:
        if not self.sense:
            return ""
        holds = self.measured <= self.target if self.sense == "<=" else self.measured >= self.target
        return "holds" if holds else "MISSED"


def worst(what: str, ratios: Mapping[str, float], sense: str, target: float) -> list[Claim]:
    """The claim on the model where it is furthest from holding; none where there are no ratios."""
    found = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
    if not found:
        return []
    name = (max if sense == "<=" else min)(found, key=lambda name: found[name])
    return [Claim(f"{what}, worst of {len(found)}: {name}", found[name], sense, target)]


def interleaved(
    runs: Runs, repeats: int, at_least: float = 2e-3, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of one call of each run, the quickest of `repeats` turns; a turn calls a short run until it has taken
    `at_least` seconds."""
    calls = {}
    for name, run in runs.items():
        run()  # compiles, and warms the caches
        calls[name] = max(1, int(at_least / max(1e-7, _seconds(run, 1, clock))))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run, calls[name], clock))
    return best


def _seconds(run: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    began = clock()
    for _ in range(calls):
        run()
    return (clock() - began) / calls


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, numbers to three digits."""
    cells = [list(header)] + [[_text(value) for value in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = [
        "  ".join(
            text.ljust(w) if k == 0 else text.rjust(w) for k, (text, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    print(f"\n{title}\n" + "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]), flush=True)


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_claims(claims: Sequence[Claim]) -> None:
    load = f"load average {os.getloadavg()[0]:.1f} on " if hasattr(os, "getloadavg") else ""
    print_table(
        f"Summary ({load}{os.cpu_count()} cores)",
        ["ratio", "measured", "target", ""],
        [(c.what, c.measured, f"{c.sense} {c.target:g}" if c.sense else "", c.verdict) for c in claims],
    )


def peak_megabytes() -> float:
    """The most memory this process has held.  (`ru_maxrss` would count the parent's, which a child shares until it
    starts its own program.)"""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def forget_peak() -> None:
    """Count `peak_megabytes` from here, where the system can."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")


def in_fresh_process(
    *arguments: str, seconds: float | None = None, gigabytes: float | None = None, **environment: str
) -> Any:
    """Run a script in a new interpreter, held to seconds and gigabytes; its last line of output is JSON."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=seconds,
            env=os.environ | environment,
            preexec_fn=None if gigabytes is None else _limit(gigabytes),
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(arguments)}:\nnot in {seconds:g} s") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed ({done.returncode}):\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _limit(gigabytes: float) -> Callable[[], None] | None:
    """What a process does first to have no more memory than that, where the system can."""
    try:
        import resource
    except ImportError:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30),) * 2)


def peer(module: str, package: str = "") -> Any:
    """A library to compare with."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingError(f"{error}: pip install {package or module}") from None


def uai_files(only: str = "") -> list[Path]:
    """Files of the folder that is named by CLAMPZ_UAI, if one is, whose names have a word in them."""
    folder = os.environ.get(UAI_FOLDER)
    return [] if folder is None else sorted(path for path in Path(folder).glob("*.uai*") if _is_model(path, only))


def _is_model(path: Path, only: str) -> bool:
    return path.name.removesuffix(".gz").endswith(".uai") and only in path.name


def read_with_evidence(path: Path) -> Any:
    """A model under what a file FILE.uai.evid beside it says."""
    import clampz as cz

    evidence = path.with_name(path.name.removesuffix(".gz") + ".evid")
    return cz.read(path, evidence=evidence if evidence.exists() else None)


def alone(main: Callable[[bool], list[Claim]]) -> None:
    """What a benchmark does when it is run by itself; the exit code says whether a target was missed."""
    try:
        claims = main("--quick" in sys.argv)
    except MissingError as reason:
        raise SystemExit(f"skipped: {reason}") from None
    print_claims(claims)
    sys.exit(any(claim.verdict == "MISSED" for claim in claims))
