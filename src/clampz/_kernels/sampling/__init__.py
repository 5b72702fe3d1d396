"""Kernels that draw configurations and score them."""
