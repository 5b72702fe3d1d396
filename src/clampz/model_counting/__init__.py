"""Counting: log Z of models full of hard zeros, by programs that count weighted clauses.

May import: model, budget, options, kernels, wording, numerics and errors.
"""
