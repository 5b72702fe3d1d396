"""Bounds on the leaves of the tree, as lanes of one batch, here or on another machine."""
