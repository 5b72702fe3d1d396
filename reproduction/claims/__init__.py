"""Claims of the paper, what they are judged by, and their verdicts.

May import: families, settings, table, tools, and the small examples among the pictures.
"""
