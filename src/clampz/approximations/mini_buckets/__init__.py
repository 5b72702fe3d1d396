"""Weighted mini-buckets: bounds on log Z from both sides by elimination under a limit of table entries, with shifts and
weights that are optimised.

May import: simplifying, and what is below it.
"""
