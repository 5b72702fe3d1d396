"""Clamping: branches, selectors that say where, and the sum over branches.

May import: approximations and everything below them.
"""
