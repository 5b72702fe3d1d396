"""A model over a range of inverse temperatures: certified ends of log Z, and its thermodynamics."""
