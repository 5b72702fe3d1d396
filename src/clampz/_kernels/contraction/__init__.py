"""Kernels of pairwise contractions: trees, their steps, and both passes over them."""
