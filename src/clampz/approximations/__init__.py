"""The four ways to log Z and marginals: exact, mean field, Bethe and TRW, all with one signature."""
