"""A portfolio of strategies on one problem: free workers go where most nats are closed per second, as measured.

May import: model and all below it.
"""
