"""Questions with certified answers: the probability of an event, the ratio of two partition functions."""
