"""Certified intervals of marginals, and marginals with standard errors.

May import: bounding's tree, and all that it may.
"""
