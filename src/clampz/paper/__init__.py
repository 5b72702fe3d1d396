"""The reproduction of [WD16]: models, runs, a table of what they found, figures and claims drawn from it, and the
report."""
