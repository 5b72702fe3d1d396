"""Simplify first: a smaller model with the same log Z, what was done, and the way back.

May import: model, options, watch, and the tools below them.
"""
