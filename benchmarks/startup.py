"""How long until the first result: importing clampz, and the first call of each method with cold and with warm kernel
caches.

    python benchmarks/startup.py [--quick]

Every time is from the start of a new interpreter to its end, the median of a few; a cold cache is an empty directory
for Numba's compiled kernels.
"""

import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from timing import Claim, alone, print_table, worst

METHODS = ("exact", "mean_field", "bethe", "trw")


def seconds(code: str, cache: str | None = None) -> float:
    """A new interpreter that runs this code; byte code is kept, as it is where people install packages."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return time.perf_counter() - began


def main(quick: bool) -> list[Claim]:
    repeats = 3 if quick else 5
    codes = {
        "clampz": "import clampz",
        "numpy and numba": "import numpy, numba",
        "scipy too": "import numpy, numba, scipy.sparse.csgraph",
        "nothing": "pass",
    }
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(repeats):
        for name, code in codes.items():
            times[name].append(seconds(code))
    imports = {name: median(taken) for name, taken in times.items()}
    print_table("Imports, s from start to end of an interpreter", ["import", "seconds", "/numpy and numba"],
                [(name, taken, taken / imports["numpy and numba"]) for name, taken in imports.items()])  # fmt: skip
    claims = [
        Claim("import clampz / import numpy, numba, scipy", imports["clampz"] / imports["scipy too"], "<=", 1.2),
        Claim("import clampz / import numpy, numba", imports["clampz"] / imports["numpy and numba"]),
    ]
    later: dict[str, float] = {}
    rows = []
    for labels in (2, 3):
        for method in METHODS:
            call = f"import clampz as cz; cz.{method}(cz.generators.grid(5, 5, labels={labels}, rng=0))"
            with tempfile.TemporaryDirectory() as cache:
                cold = seconds(call, cache)
                warm = median(seconds(call, cache) for _ in range(repeats))
            rows.append([method, labels, cold, warm, cold / warm, warm / imports["clampz"]])
            later[f"{method} of {labels} labels"] = warm / imports["clampz"]
    print_table(
        "First call on a 5x5 grid, s from the start of the interpreter",
        ["method", "labels", "cold", "warm", "cold/warm", "warm/import"],
        rows,
    )
    return claims + worst("first call, warm cache / import clampz", later, "<=", 2.0)


if __name__ == "__main__":
    alone(main)
