"""Exact sums of binary models on planar graphs, however wide: couplings, the plan of a graph, and its sum."""
