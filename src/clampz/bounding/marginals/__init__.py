"""Certified intervals of marginals, and marginals with standard errors."""
