"""The AND/OR tree of a branch and bound: nodes, the frontier, what to branch on, and the loop.

May import: bounding's strategies and leaves, and all that they may.
"""
