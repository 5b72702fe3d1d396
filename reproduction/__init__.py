"""The reproduction of [WD16]: models, runs, a table of what they found, figures and claims drawn from it, the report.

It is run in a clone of the repository, by `python -m reproduction`, and is no part of the package.
"""
