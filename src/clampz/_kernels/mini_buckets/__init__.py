"""Kernels of weighted mini-buckets: structures, passes, shifts, weights, draws."""
