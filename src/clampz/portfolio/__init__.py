"""A portfolio of strategies on one problem: free workers go to whoever closes most nats per second, as measured."""
