"""Claims of the paper, what they are judged by, and their verdicts."""
