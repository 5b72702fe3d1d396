"""Weighted mini-buckets: upper and lower bounds on log Z by elimination in limited tables, with optimised shifts and
weights.
"""
