"""Kernels that draw configurations and score them.

May import: other kernels and numerics.
"""
