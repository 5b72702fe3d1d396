"""Kernels of weighted mini-buckets: structures, passes, shifts, weights, draws.

May import: other kernels and numerics.
"""
