"""A model with all that a file can keep, in clampz's own formats."""

from io import BytesIO
from zipfile import ZipFile

import numpy as np

import clampz as cz
from clampz.io import npz_model

SUFFIXES = (".json", ".npz", ".json.gz", ".npz.gz")
LAWN = """{
"format": "clampz model",
"version": 1,
"num_states": [2, 2, 3],
"names": ["rain", "sprinkler", "grass"],
"state_names": [["no", "yes"], ["off", "on"], ["dry", "damp", "wet"]],
"constant": 0.1,
"factors": [
[["rain"], [0.0, -1.0]],
[["sprinkler"], [0.0, 0.3333333333333333]],
[["grass"], [0.0, 0.0, 0.0]],
[["rain", "sprinkler"], [[0.0, "-inf"], [0.0, -3.0]]],
[["rain", "sprinkler", "grass"], [[[1.0, 0.0, 0.0], [-2.0, 0.0, 2.0]], [[1.0, 0.0, 0.0], [-1.0, 1.0, "-inf"]]]]
]
}
"""


def lawn():
    """The model in LAWN."""
    return cz.Model(
        [[0.0, -1.0], [0.0, 1 / 3], [0.0, 0.0, 0.0]],
        {("rain", "sprinkler"): [[0.0, -np.inf], [0.0, -3.0]]},
        factors=[
            (
                ("rain", "sprinkler", "grass"),
                [[[1.0, 0.0, 0.0], [-2.0, 0.0, 2.0]], [[1.0, 0.0, 0.0], [-1.0, 1.0, -np.inf]]],
            )
        ],
        constant=0.1,
        names=["rain", "sprinkler", "grass"],
        state_names=[["no", "yes"], ["off", "on"], ["dry", "damp", "wet"]],
    )


def zipped(model, *, without=(), head=None, **changed):
    """An .npz file of a model, with some arrays changed, as numpy itself writes them."""
    out = BytesIO()
    with ZipFile(BytesIO(npz_model.encode(model))) as file, ZipFile(out, "w") as other:
        for name in file.namelist():
            data, stem = file.read(name), name.removesuffix(".npy")
            if stem in changed:
                array = BytesIO()
                np.save(array, changed.pop(stem), allow_pickle=True)
                data = array.getvalue()
            if name == "model.json" and head is not None:
                data = head
            if name not in without:
                other.writestr(name, data)
        for stem, data in changed.items():
            other.writestr(stem, data)
    return out.getvalue()
