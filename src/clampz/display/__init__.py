"""How numbers, names, notebooks and pages look; the hooks by which results find their pictures.

May import: numerics and errors.
"""
