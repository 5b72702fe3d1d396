"""Mean field, Bethe, TRW and mini-buckets: log Z and marginals of every lane of a batch, with the loop that they share.

May import: elimination, the signature of methods, and everything below them.
"""
