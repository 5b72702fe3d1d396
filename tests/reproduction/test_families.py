"""The paper's families: which there are, and that each run is reproducible by itself."""

import numpy as np
import pytest

import clampz as cz
from clampz.errors import OptionError
from reproduction.families import EVERY, FAMILIES, LABELLED, Family, FromFile, families, family_named


def test_there_are_44_families_of_distinct_names_and_titles():
    assert len(FAMILIES) == 44 and len(LABELLED) == 12
    assert len(EVERY) == len({family.name for family in EVERY}) == len({family.title for family in EVERY}) == 56
    assert {family.name for family in FAMILIES} >= {"grid49[-6,6]", "er25[0,2]", "regular81[-12,12]", "complete15[0,6]"}
    assert all(family_named(family.name) is family for family in FAMILIES)


def test_seeds_are_distinct_and_do_not_change():
    seeds = {family.seed(run) for family in FAMILIES for run in range(100)}
    assert len(seeds) == 4400
    assert family_named("grid49[-6,6]").seed(0) == 10966486648848


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_models_are_what_the_family_says(family: Family):
    model, again, other = family.model(3), family.model(3), family.model(4)
    W = model.pair_form.W
    assert model.num_variables == family.size
    assert np.array_equal(model.unary.flat, again.unary.flat) and np.array_equal(
        model.pairwise.flat, again.pairwise.flat
    )
    assert not np.array_equal(model.unary.flat, other.unary.flat)
    assert (np.abs(model.unary.flat) <= 2).all() and W.min() >= family.weights[0] and W.max() <= family.weights[1]
    assert (model.kind == "mixed") == family.mixed
    degrees = model.topology.degrees
    if family.graph in ("grid", "regular"):
        assert (degrees == 4).all()
    elif family.graph == "complete":
        assert (degrees == family.size - 1).all()
    else:
        assert 2.5 < degrees.mean() < 5.5


def test_families_are_found_by_graph_size_and_weights():
    assert families() == list(EVERY)
    assert [family.name for family in families("er", 49)] == ["er49[0,2]", "er49[0,6]", "er49[-6,6]", "er49[-12,12]"]
    assert [family.name for family in families("grid", 25, (-6, 6))] == [
        "grid25[-6,6]",
        "grid25[-6,6]potts3",
        "grid25[-6,6]table3",
        "grid25[-6,6]potts5",
        "grid25[-6,6]table5",
    ]
    assert [family.name for family in families(size=15, weights=(-6, 6))] == ["complete15[-6,6]"]
    assert [family.name for family in families("grid81[0,2]")] == ["grid81[0,2]"]


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [
        ({"graph": "gird"}, "grid"),
        ({"graph": "grid", "size": 50}, "25, 49, 81"),
        ({"graph": "complete", "size": 25}, "10, 15"),
        ({"weights": (0, 3)}, "-12,12"),
    ],
)
def test_what_is_unknown_is_refused_with_what_there_is(wanted, listed):
    with pytest.raises(OptionError, match=listed):
        families(**wanted)
    with pytest.raises(OptionError, match=r"grid25\[0,2\]"):
        family_named("grid26[0,2]")


@pytest.mark.parametrize("family", LABELLED, ids=lambda family: family.name)
def test_models_of_more_labels_are_on_the_same_graphs(family: Family):
    model = family.model(0)
    assert set(model.num_states.tolist()) == {family.labels} and model.num_variables == family.size
    assert family.mixed and family_named(family.name) is family
    tables = [model.pairwise[i, j] for i, j in model.edges.tolist()]
    alike = all(np.ptp(table[~np.eye(family.labels, dtype=bool)]) < 1e-12 for table in tables)
    assert alike == (family.potentials == "potts")
    if family.weights[0] == 0:  # attractive: no edge wants its ends to differ
        assert all(table.diagonal().min() >= table.max() - 1e-12 for table in tables)


def test_a_file_is_a_family_of_one_model(tmp_path):
    cz.write(cz.generators.lamp(rng=0), tmp_path / "lamp.uai")
    family = family_named(str(tmp_path / "lamp.uai"))
    assert isinstance(family, FromFile) and (family.name, family.title) == (str(tmp_path / "lamp.uai"), "lamp.uai")
    assert family.model(0).num_variables == 10 and family.mixed
