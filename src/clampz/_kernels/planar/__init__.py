"""Kernels of planar sums: the planarity test, cities, dissection, elimination of fronts.

May import: other kernels and numerics.
"""
