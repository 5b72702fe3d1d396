"""Mean field, Bethe, TRW and mini-buckets: log Z and marginals of every lane of a batch, with the loop that they share."""
