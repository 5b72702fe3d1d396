"""The AND/OR tree of a branch and bound: nodes, the frontier, what to branch on, and the loop."""
