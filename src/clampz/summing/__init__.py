"""Exact sums by whatever suits the model: simplified first, then by elimination, or as a planar graph.

May import: elimination, planar, counting, simplifying, and the signature and tools below them.
"""
