"""Presolve: a smaller model with the same log Z or the same maximum, and the postsolve for bounds, marginals and
states.
"""
