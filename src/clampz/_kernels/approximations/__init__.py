"""Kernels of mean field and of message passing, and what both need of models with any number of labels."""
