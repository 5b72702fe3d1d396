"""A search saved in a file and restored from it.  Nothing in such a file is ever run.

May import: bounding's tree, and all that it may.
"""
