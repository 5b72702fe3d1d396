"""Kernels of variable elimination: orders, plans, and the two passes.

May import: other kernels and numerics.
"""
