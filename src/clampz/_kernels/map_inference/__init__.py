"""Kernels of the search for the best configuration.

May import: other kernels and numerics.
"""
