"""The best configuration: found from below, bounded from above, and what is between searched through."""
