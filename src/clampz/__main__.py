"""`python -m clampz`: the command line."""

import sys

from clampz.cli import main

if __name__ == "__main__":
    sys.exit(main())
