"""Figures of the paper and beyond it, drawn from the table of results."""
