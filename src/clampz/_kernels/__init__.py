"""Numba kernels: arrays in, arrays out, no objects.  Checking and defaults stay with the callers."""
