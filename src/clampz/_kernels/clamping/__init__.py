"""Kernels of the selectors that say where to clamp.

May import: other kernels and numerics.
"""
