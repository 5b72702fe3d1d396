"""All benchmarks, one after another, and a summary of their ratios at the end.

    python benchmarks/run.py [--only NAME] [--quick] [--uai FOLDER]

What misses its target says so, and the exit code is then 1.  What has nothing to compare with here says so too:
`pip install cotengra dwave-samplers pyagrum pygms pytoulbar2` brings the peers, `--uai` the files of the competitions.
"""

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

from timing import UAI_FOLDER, Claim, MissingError, print_claims

ORDER = (
    "kernels",
    "batching",
    "reference",
    "exact",
    "contraction",
    "selecting",
    "clamping",
    "startup",
    "scaling",
    "reading",
    "brackets",
    "presolve",
    "mini_buckets",
    "modes",
    "uai",
    "walks",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", choices=ORDER, action="append", metavar="NAME", help=f"one of {', '.join(ORDER)}; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="fewer models, sizes and repeats")
    parser.add_argument("--uai", type=Path, metavar="FOLDER", help=f"of UAI files; by default what {UAI_FOLDER} names")
    arguments = parser.parse_args()
    if arguments.uai is not None:
        os.environ[UAI_FOLDER] = str(arguments.uai.resolve())
    claims: list[Claim] = []
    skipped: list[str] = []
    for name in arguments.only or ORDER:
        began = time.perf_counter()
        print(f"\n== {name} ".ljust(100, "="), flush=True)
        try:
            claims += importlib.import_module(name).main(arguments.quick)
        except MissingError as reason:
            skipped.append(f"{name}: skipped, {reason}")
        print(f"({name}: {time.perf_counter() - began:.0f} s)")
    print_claims(claims)
    print("", *skipped, sep="\n")
    return int(any(claim.verdict == "MISSED" for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
