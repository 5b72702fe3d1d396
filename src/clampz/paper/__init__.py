"""The reproduction of [WD16]: models, runs, a table of what they found, figures and claims drawn from it, and the
report.

May import: what users can, `import clampz as cz` and `clampz.plotting`, and the tools of the root (errors, files,
options, numerics, telling, watch, wording).
"""
