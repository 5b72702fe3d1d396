"""The commands, a module each: its help, `add_arguments`, which declares the arguments, and `run`, which returns the
exit code.
"""
