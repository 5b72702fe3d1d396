"""Anytime bounds: a bracket on log Z that tightens while it runs, and holds whenever it is stopped.

A branch and bound over an AND/OR tree of clamps and components (`tree`) bounds its leaves as lanes of batches
(`leaves`) and shares the run with ways to bound the whole model (`strategies`).  Every bound ever computed holds, so
the root's can only tighten.
"""
