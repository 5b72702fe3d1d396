"""Anytime bounds: a bracket on log Z that tightens while it runs, and holds whenever it is stopped.

Strategies share the run (`strategies`).  One of them is branch and bound over an AND/OR tree of clamps and components
(`tree`), which bounds its leaves as lanes of batches (`leaves`); the others bound the whole model.  Every bound ever
computed holds, so the root's can only tighten.
"""
