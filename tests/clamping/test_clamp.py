"""clamp: what it refuses, before any work."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz import generators
from clampz.clamping.branches import check_memory
from clampz.clamping.clamp import META_SELECTORS


def grid():
    return generators.grid(3, 3, rng=0, weights=(-4, 4))


def refused(match, error=cz.errors.OptionError, model=None, method="trw", **arguments):
    """Refused with a message, before any work is done."""
    seen = []
    with pytest.raises(error, match=match):
        cz.clamp(model or generators.barbell(2.0), method, progress=seen.append, **arguments)
    assert not seen


def test_refused_variables():
    refused(r"'X4' is to be clamped twice", cz.errors.EvidenceError, variables=[3, 0, "X4"])
    refused(r"variable", cz.errors.EvidenceError, variables=["X9"])
    refused(r"variable", cz.errors.EvidenceError, variables=[8])
    refused(r"variable", cz.errors.EvidenceError, variables=[-1])
    refused(r"variables: expected a list of variables, by index or name, found 3", cz.errors.EvidenceError, variables=3)
    refused(
        r"variables: expected a list of variables, by index or name, found 'X1'",
        cz.errors.EvidenceError,
        variables="X1",
    )


def test_variables_or_k():
    refused(r"either variables= or k=")
    refused(r"either variables= or k=", variables=[0], k=1)


@pytest.mark.parametrize("k", [9, -1, 1.5, "2"])
def test_refused_k(k):
    refused(rf"k: expected a whole number from 0 to 8, the number of variables, found {k!r}", k=k)


def test_whole_numbers_of_any_type():
    """As everywhere else: numpy's are whole numbers, truth values are not."""
    assert (
        cz.clamp(grid(), "mf", k=np.int64(2), select="maxW").variables
        == cz.clamp(grid(), "mf", k=2, select="maxW").variables
    )
    refused(r"k: expected a whole number", k=True)


def test_too_many_branches():
    refused(
        r"60 variables to be clamped by maxW\+TRE make [\d,]+ branches, which need about [\d,]+ bytes, "
        r"and [\d,]+ are allowed: clamp fewer",
        model=generators.complete(60, rng=0),
        k=60,
    )
    refused(
        r"branches, which need about [\d,]+ bytes.*clamp fewer",
        model=generators.complete(60, rng=0),
        variables=range(60),
    )


@pytest.mark.parametrize("select", ["greedy", "optimal"])
def test_too_many_candidates(select, monkeypatch):
    """Every variable's branches are one batch: room for the branches that stay in the end is not enough."""
    lanes = {"greedy": 2 * 9, "optimal": 4 * math.comb(9, 2)}[select]
    with pytest.raises(cz.errors.OptionError) as refusal:
        check_memory(grid(), 4, "two variables", limit=1)
    four = int(str(refusal.value).split("need about ")[1].split(" bytes")[0].replace(",", ""))
    monkeypatch.setattr("clampz.clamping.branches.memory_allowed", lambda max_table: four * lanes // 8)
    cz.clamp(grid(), "trw", k=2, select="maxW")
    refused(r"bytes", model=grid(), k=2, select=select)


def test_refused_selectors():
    refused(r"unknown selector 'maxw'.*'maxW'.*Mpower", k=1, select="maxw")
    refused(r"did you mean 'pseudo-greedy'.*\?", k=1, select="pseudogreedy")
    refused(
        r"unknown selector 'zzzzzz'.*" + ".*".join(["maxW0", "strongCycles", *META_SELECTORS]), k=1, select="zzzzzz"
    )


def test_refused_kinds():
    refused(r"unknown selector None.*maxW", k=1, select=None)
    refused(r"unknown method None.*trw", method=None, k=1)
    refused(r"options: expected None or TRWOptions, found BetheOptions", k=1, options=cz.options.BetheOptions())


def test_refused_methods():
    refused(r"unknown method 'twr'.*did you mean 'trw'\?.*exact, mean_field, bethe, trw", method="twr", k=1)


def test_refused_criterion():
    refused(
        r"criterion: expected one of trw, mf, bethe, mini_buckets, gap, found 'best'",
        k=1,
        select="greedy",
        criterion="best",
    )


def test_refused_options():
    refused(r"unknown option 'tool'; did you mean 'tol'\?", k=1, tool=1)
    refused(r"tol: expected", k=1, tol=-1.0)
    refused(r"unknown option 'edge_weights'", method="mf", k=1, edge_weights="uniform")


def test_what_is_no_memo():
    refused("memo: expected a Memo", k=1, memo={}, warm_starts=False)


def test_an_estimate_with_evidence_gives_no_weights():
    """Its edge weights are those of a smaller graph: as a start of the whole they would prove what is false."""
    model = cz.generators.complete(8, weights=(-4, 4), rng=9)
    known = cz.trw(model, evidence={0: 1, 1: 1, 2: 0, 3: 1})
    with pytest.raises(cz.errors.OptionError, match="unknown option 'start'"):
        cz.clamp(model, "trw", k=0, start=known)
    assert cz.trw(model, start=known).upper >= cz.exact(model).log_z


def test_a_sum_over_branches_that_were_not_all_reached_does_not_count():
    model = cz.generators.complete(6, rng=0)
    batches = []

    def stop(progress):
        batches.append(progress.num_lanes)
        if progress.num_lanes > 1:
            raise StopIteration

    found = cz.clamp(model, "exact", k=1, progress=stop)
    assert batches[-1] == 2 and found.stopped_by == "callback" and found.variables == ()
    assert found.log_z == cz.exact(model).log_z and found.bound == "exact"
