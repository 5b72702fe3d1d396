"""Kernels of mean field: coordinate ascent on log-odds, tables and factors, and the search for a feasible start."""
