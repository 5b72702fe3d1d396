"""Clamping: fix variables to each of their states, solve the branches, and sum their partition functions."""
