"""Learning: potentials that make data likely, by exact likelihoods or certified bounds on them.

`rows` reads data, `parameters` says which potentials are learned and which of them are one, `likelihood` has the
objective and its gradient, `fitting` maximises it.  May import: approximations and everything below them.
"""
