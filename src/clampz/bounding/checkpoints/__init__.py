"""A search saved in a file and restored from it.  Nothing in such a file is ever run."""
