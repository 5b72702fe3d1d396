"""Learning: potentials that make data likely, by exact likelihoods or certified bounds on them.

`data_rows` reads data, `parameters` says which potentials are learned and which are tied, `likelihood` has the
objective and its gradient, and `fit` maximises it.
"""
