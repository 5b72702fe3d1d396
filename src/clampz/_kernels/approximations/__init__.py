"""Kernels of mean field and of message passing, for two states and for tables.

May import: other kernels and numerics.
"""
