"""A portfolio of strategies on one problem: free workers go to whoever closes most nats per second, as measured.

May import: model and all below it.
"""
