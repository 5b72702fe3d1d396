"""What the benchmarks share: runs that take turns, tables, claims, and measurements in a process of their own.

A time says little about another machine, or about this one under load.  So every benchmark measures what it compares in
one run, turn by turn, and reports the ratio of the quickest times: load only ever adds.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Runs = dict[str, Callable[[], Any]]


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


def interleaved(runs: Runs, repeats: int, at_least: float = 2e-3) -> dict[str, float]:
    """Seconds of one call of each run, the quickest of `repeats` turns; a turn calls a short run until it has taken
    `at_least` seconds."""
    calls = {}
    for name, run in runs.items():
        run()  # compiles, and warms the caches
        calls[name] = max(1, int(at_least / max(1e-7, _seconds(run, 1))))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run, calls[name]))
    return best


def _seconds(run: Callable[[], Any], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - began) / calls


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
    print_table(
        f"Summary (load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)",
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


def in_fresh_process(*arguments: str, seconds: float | None = None) -> Any:
    """Run a script in a new interpreter, for so many seconds at most; its last line of output is JSON."""
    try:
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(arguments)} did not end in {seconds:g} s") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed ({done.returncode}):\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def alone(main: Callable[[bool], list[Claim]]) -> None:
    """What a benchmark does when it is run by itself."""
    print_claims(main("--quick" in sys.argv))
