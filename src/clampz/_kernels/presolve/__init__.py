"""Kernels of the presolve: its rules over flat pools of tables, and the postsolve."""
