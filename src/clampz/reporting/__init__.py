"""Reports of solved models: description, method, result and marginals on one page for a browser.

May import: everything but the command line; matplotlib only when a report is written.
"""

from clampz.display.plot_hooks import reports
from clampz.reporting.report import make_page, write_report
from clampz.solving.solution import Solution

__all__ = ["make_page", "write_report"]

reports(Solution, write_report)
