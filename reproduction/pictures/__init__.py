"""Figures of the paper and beyond it, drawn from the table of results.

May import: families, settings, table and tools; matplotlib where something is drawn.
"""
