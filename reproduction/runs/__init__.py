"""Runs: the experiments on one model, the places where they are made, and the store that keeps them."""
