"""Ways to tighten a bracket beside the tree: exact sums, mini-buckets, cutsets, dives, draws.

May import: bounding's leaves, and all that bounding may.
"""
