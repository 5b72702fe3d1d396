"""Configurations drawn from a model: exactly, by rejection, with weights, or along Markov chains.

One engine for all but the chains: an upper bound by mini-buckets is a proposal whose weights it limits.  Where no
bucket is split the draws are the model's own; elsewhere they are accepted with probability f / (q e^bound), or
weighted.
"""
