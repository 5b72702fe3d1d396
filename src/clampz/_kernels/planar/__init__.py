"""Kernels of planar sums: the planarity test, cities, dissection, elimination of fronts."""
