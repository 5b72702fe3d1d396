"""One module a command: `add` declares its arguments, `run` returns its exit code.

May import: everything.
"""
