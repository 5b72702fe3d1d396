"""Kernels of the search for the best configuration."""
