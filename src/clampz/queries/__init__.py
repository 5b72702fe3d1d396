"""Questions with certified answers: the probability of an event, the ratio of two partition functions.

May import: bounding and all that it may.
"""
