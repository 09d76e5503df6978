"""Every verdict on the papers: a test fails if a measured number leaves the band on which it rests, or if
the verdict that follows is another one.
"""

import csv
from pathlib import Path

import pytest

from holonome import papers
from holonome.papers import Band, Claim
from holonome.papers.verdict import DIFFERS, FAILS, FITTED, HOLDS, REPRODUCED

EXPECTED = Path(__file__).with_name("verdicts.csv")
PAGES = Path(__file__).parents[2] / "docs" / "papers"

FAST = {
    "ascher-lin": {
        "equation-4.12",
        "equation-5.2",
        "example-6.4",
        "turning-point",
        "velocity-level",
        "remark-4.1",
        "initial-layer",
        "table-6.4",
        "figure-5.1",
    },
    "eich": {"gauss-newton", "projected-error", "remark-2.2", "error-propagation", "theorems-3.1-and-3.2"},
    "wang-hou-modnak": {"bounds", "iteration-error", "weights", "convergence", "table-1", "iterations"},
    "yen-petzold": {
        "theorem-4.2",
        "algorithm-2.1",
        "theorem-3.1",
        "theorem-4.1",
        "lemma-2.2",
        "lemma-3.1",
        "lemma-4.1",
        "linear-constraints",
        "bound-2.27",
        "step-conditions",
        "cost",
        "superlinear",
        "untested-multipliers",
        "radau",
        "remark-2.2",
        "table-5.2",
        "figure-5.3",
    },
}


def expected() -> dict[tuple[str, str], list[str]]:
    """The verdicts of each experiment, rows first, then claims."""
    with EXPECTED.open(encoding="utf-8", newline="") as file:
        return {
            (line["paper"], line["experiment"]): line["verdicts"].split(";") for line in csv.DictReader(file)
        }


@pytest.fixture(scope="module")
def results(experiments):
    return {name: experiments(paper) for name, paper in papers.available().items()}


CASES = [
    pytest.param(paper, name, id=f"{paper}-{name}", marks=() if name in FAST[paper] else pytest.mark.slow)
    for paper, of in papers.available().items()
    for name in of.experiments
]


def test_every_experiment_has_expected_verdicts():
    assert set(expected()) == {
        (paper, name) for paper, of in papers.available().items() for name in of.experiments
    }


@pytest.mark.parametrize(("paper", "name"), CASES)
def test_the_verdicts_are_these(paper, name, results):
    result = results[paper][name]
    found = [item.verdict for item in (*result.rows, *result.claims)]
    outside = [str(band) for claim in result.claims for band in claim.bands if not band.holds]
    assert found == [verdict for verdict in expected()[paper, name] if verdict], outside


@pytest.mark.parametrize(("paper", "name"), CASES)
def test_a_verdict_follows_from_its_bands(paper, name, results):
    for claim in results[paper][name].claims:
        if claim.bands:
            met = all(band.holds for band in claim.bands)
            assert claim.verdict in ((REPRODUCED, FITTED, HOLDS) if met else (DIFFERS, FAILS)), (
                claim.statement
            )


@pytest.mark.parametrize(("paper", "name"), CASES)
def test_what_differs_or_was_fitted_has_a_reason(paper, name, results):
    for row in results[paper][name].rows:
        assert row.why or row.verdict not in (DIFFERS, FITTED)


@pytest.mark.parametrize(("paper", "name"), CASES)
def test_the_pages_tell_the_same(paper, name, results):
    """Statements and verdicts; their numbers were written by ``docs/papers/write.py``."""
    (page,) = PAGES.glob(f"{paper.replace('-', '_')}_[0-9]*.md")
    lines = page.read_text(encoding="utf-8").splitlines()
    for claim in results[paper][name].claims:
        told = claim.statement.replace("|", "\\|")
        assert any(told in line and claim.verdict in line.rpartition("|")[0][-20:] for line in lines), told


def test_bands():
    """Both ends belong to a band, and NaN is in none."""
    assert Band("x", 1.0, 1.0, 2.0).holds
    assert Band("x", 2.0, 1.0, 2.0).holds
    assert not Band("x", float("nan")).holds
    assert Band.near("x", 1.05, 1.0, 0.1).holds
    assert not Band.within_factor("x", 0.3, 1.0, 3).holds
    claim = Claim.of("It is so.", [Band("a", 1, 0, 2), Band("b", 3, 0, 2)], "no")
    assert (claim.verdict, len(claim.bands)) == (DIFFERS, 2)
    assert Claim.of("It is so.", Band("a", 1, 0, 2), "yes", fitted=True).verdict == FITTED
