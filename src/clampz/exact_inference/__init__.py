"""Exact sums: elimination orders, contraction trees, slices, the plan that has them, and the method `exact`."""
