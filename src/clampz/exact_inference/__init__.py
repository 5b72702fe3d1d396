"""What can be summed, is: orders, plans that carry them, what they cost, sums, sums in slices, and the method `exact`.

May import: model, the signature of methods, and the tools below them.
"""
