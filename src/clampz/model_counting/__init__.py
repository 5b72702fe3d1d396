"""Counting: log Z of models full of hard zeros, by programs that count weighted clauses."""
