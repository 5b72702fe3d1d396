"""How long files take: reading against pyGMs' reader, the time of a million table entries, and the memory it takes.

    python benchmarks/reading.py [--quick]

Without pyGMs (the package `pygms`) the comparison is left out.
"""

import importlib.util
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np

import clampz as cz
from timing import Claim, alone, interleaved, print_table

NUM_ENTRIES = 10**6


def grid_against_pygms(folder: Path, side: int, repeats: int) -> list[Claim]:
    path = folder / "grid.uai"
    cz.write(cz.generators.grid(side, side, rng=0), path)
    runs = {"clampz": lambda: cz.read(path)}
    if importlib.util.find_spec("pygms"):
        from pygms import readUai

        runs["pyGMs"] = lambda: readUai(str(path))
    seconds = interleaved(runs, repeats)
    print_table(
        f"A {side}x{side} grid, {path.stat().st_size / 1e6:.1f} MB", ["reader", "seconds"], list(seconds.items())
    )
    return (
        [Claim(f"pyGMs / clampz, reading a {side}x{side} grid", seconds["pyGMs"] / seconds["clampz"], ">=", 10)]
        if "pyGMs" in seconds
        else []
    )


def million_entries(folder: Path, repeats: int) -> list[Claim]:
    rng = np.random.default_rng(0)
    chain = cz.Model.from_arrays(
        np.zeros((101, 100)), [(i, i + 1) for i in range(100)], rng.normal(size=(100, 100, 100))
    )
    models = {
        "100 pairs": chain,
        "1 factor of 6": cz.Model.from_factors([10] * 6, [(range(6), rng.normal(size=[10] * 6))]),
    }
    rows, slowest = [], 0.0
    for name, model in models.items():
        for suffix in (".uai", ".uai.gz", ".fg"):
            path = folder / f"model{suffix}"
            writing = interleaved({"write": lambda m=model, p=path: cz.write(m, p)}, 1)["write"]
            reading = interleaved({"read": lambda p=path: cz.read(p)}, repeats)["read"]
            tracemalloc.start()
            cz.read(path)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            size = (folder / f"model{suffix.removesuffix('.gz')}").stat().st_size
            rows.append([name, suffix, size / 1e6, writing, reading, peak / size])
            slowest = max(slowest, reading) if suffix == ".uai" else slowest
    print_table(
        f"{NUM_ENTRIES} table entries of 18 digits",
        ["model", "file", "MB of text", "write s", "read s", "memory / text"],
        rows,
    )
    return [Claim("seconds for a million entries of a .uai file", slowest, "<=", 1.5)]


def main(quick: bool) -> list[Claim]:
    repeats = 2 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        return grid_against_pygms(Path(folder), 100, repeats) + million_entries(Path(folder), repeats)


if __name__ == "__main__":
    alone(main)
