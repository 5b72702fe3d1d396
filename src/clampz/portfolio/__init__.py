"""A portfolio of strategies on one problem: free workers go where most nats are closed per second, as measured."""
