"""Anytime bounds: a bracket on log Z that tightens while it runs, and holds whenever it is stopped.

An AND/OR tree of clamps and components (`tree`, `frontier`) is searched best first (`search`, `choose_branching`); leaves are
bounded from narrow parts, or summed exactly (`leaves`).  Every bound that is ever computed holds, so the root's can
only tighten.  May import: clamping and everything below it.
"""
