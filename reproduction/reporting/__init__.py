"""The report: one page of claims and figures, the advice, and tables for papers."""
