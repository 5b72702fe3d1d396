"""The report: one page of claims and figures, the advice, and tables for papers.

May import: everything but the pipeline and the runs.
"""
