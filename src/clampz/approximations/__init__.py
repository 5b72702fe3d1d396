"""Mean field, Bethe, TRW and mini-buckets: log Z and marginals of every lane of a batch, with the loop that they share.

May import: exact_inference and everything below it.
"""
