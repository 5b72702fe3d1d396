"""Kernels that read, check and sum compiled circuits."""
