"""Reports of solved models: description, method, result and marginals on one page for a browser."""

from clampz.display.plot_hooks import reports
from clampz.reporting.report import make_page, write_report
from clampz.solving.solution import Solution

__all__ = ["make_page", "write_report"]

reports(Solution, write_report)
