"""Kernels of the selectors that say where to clamp."""
