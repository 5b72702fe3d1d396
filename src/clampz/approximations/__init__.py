"""Mean field, Bethe, TRW and mini-buckets: log Z and marginals of all lanes of a batch, with their common loop."""
