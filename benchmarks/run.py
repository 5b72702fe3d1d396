"""All benchmarks, one after another, and a summary of their ratios at the end.

python benchmarks/run.py [--only NAME] [--quick]
"""

import argparse
import importlib
import time
from pathlib import Path

from timing import Claim, print_claims

ORDER = (
    "kernels",
    "batching",
    "reference",
    "exact",
    "selecting",
    "clamping",
    "startup",
    "scaling",
    "reading",
    "brackets",
    "simplifying",
)


def main() -> None:
    here = Path(__file__).parent
    names = [name for name in ORDER if (here / f"{name}.py").exists()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", choices=names, action="append", metavar="NAME", help=f"one of {', '.join(names)}; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    arguments = parser.parse_args()
    claims: list[Claim] = []
    for name in arguments.only or names:
        began = time.perf_counter()
        print(f"\n== {name} ".ljust(100, "="), flush=True)
        benchmark = importlib.import_module(name)
        # exact compares itself with other libraries and prints its own table; it takes a number of repeats
        claims += (
            benchmark.main(3 if arguments.quick else 7) or [] if name == "exact" else benchmark.main(arguments.quick)
        )
        print(f"({name}: {time.perf_counter() - began:.0f} s)")
    print_claims(claims)


if __name__ == "__main__":
    main()
