"""Models of other libraries, in and out: pgmpy, dimod, networkx and pyAgrum, each imported when it is asked for.

Names.  A label that is a string is the variable's name.  Other labels (numbers, tuples) become names by `str`, and come
back as strings; two that read the same are refused.  Labels that are the whole numbers 0 to n - 1, in any order, are
the variables' indices, need no names, and come back as numbers.  States likewise.

Evidence.  `evidence=` is in the other library's own labels and conditions the model at once: `from_dimod(bqm,
evidence={(0, 1): -1})`.  Afterwards, and in results, a string is a name and a whole number is an index, whatever it
meant in the other library: the variable labelled 7 is "7" then.

Potentials.  pgmpy and pyAgrum keep values, clampz their logarithms: a value of zero is a log potential of -inf, and the
way there and back rounds.
"""

from clampz.errors import MissingLibraryError
from clampz.interop.dimod import from_dimod, to_dimod, to_dimod_sampleset
from clampz.interop.networkx import from_networkx, to_networkx
from clampz.interop.pgmpy import from_pgmpy, to_pgmpy
from clampz.interop.pyagrum import from_pyagrum, to_pyagrum

__all__ = [
    "MissingLibraryError",
    "from_dimod",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "to_dimod",
    "to_dimod_sampleset",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
]
