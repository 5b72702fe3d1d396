"""Kernels that read, check and sum compiled circuits.

May import: other kernels and numerics.
"""
