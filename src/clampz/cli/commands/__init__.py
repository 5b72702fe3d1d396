"""The commands, a module each: `add` declares the arguments, and `run` returns the exit code.

May import: everything.
"""
