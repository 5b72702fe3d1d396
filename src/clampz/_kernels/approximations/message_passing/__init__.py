"""Kernels of message passing, shared by Bethe and TRW: on log-odds, and on tables."""
