"""Commands of the shell in cells of the site: what they print comes in one piece, and without colours."""

import os
import subprocess

from IPython.core.magic import register_cell_magic

COLOURS = ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


@register_cell_magic
def bash(line: str, cell: str) -> None:
    """Run commands one after another, until one fails."""
    env = {name: value for name, value in os.environ.items() if name not in COLOURS} | {"COLUMNS": "88"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(done.stdout, end="")
    done.check_returncode()
