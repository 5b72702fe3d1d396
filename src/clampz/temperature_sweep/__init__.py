"""A model over a range of inverse temperatures: certified ends of log Z, and its thermodynamics.

May import: bounding and the rooms below it.
"""
