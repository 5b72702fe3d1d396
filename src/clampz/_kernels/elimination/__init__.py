"""Kernels of variable elimination: orders, plans, and the two passes."""
