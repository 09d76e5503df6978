"""The campaign of random systems, in small: nobody is silently wrong, and what goes wrong is seen.

``python tests/campaign.py --help`` tells how to run the whole of it.
"""

import argparse
import sys

import numpy as np
import pytest

import campaign
from random_systems.cases import Case
from random_systems.structures import draw
from random_systems.verdict import outcome

SEEDS = [3, 11, 22, 23, 25, 27, 29, 31, 35, 36, 38, 42, 43, 45, 51, 54, 56, 57, 65, 67]
"""Some whose reference takes less than a second."""

WRONG = {"silent", "raw", "crash", "hang"}

BAD_WORKER = """
import json, os, sys, time
for seed, skip in json.load(sys.stdin):
    print(json.dumps({"seed": seed, "structure": "any"}), flush=True)
    for method in ("auto", "bdf"):
        if method not in skip:
            print(json.dumps({"seed": seed, "begins": method}), flush=True)
            if seed == 1 and method == "auto":
                os.abort() if sys.argv[1] == "crash" else time.sleep(1000)
            print(json.dumps({"seed": seed, "method": method, "result": "right", "words": ""}), flush=True)
    print(json.dumps({"seed": seed, "done": True}), flush=True)
"""


def test_twenty_systems():
    records = list(campaign.campaign(SEEDS))
    assert [record["seed"] for record in records] == SEEDS
    found = [(record["seed"], *item) for record in records for item in record["outcomes"].items()]
    assert [case for case in found if case[2]["result"] in WRONG] == []
    assert {case[2]["result"] for case in found if case[1] == "auto"} == {"right"}


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(4396, id="redundant rows, in micrometres"),
        pytest.param(6795, id="redundant rows and unknowns, in micrometres"),
        pytest.param(4527, id="redundant rows and an invariant, on the way"),
        pytest.param(4909, id="redundant rows and an invariant, at the start"),
        pytest.param(6364, id="multipliers that friction asks for, at points far from each other"),
    ],
)
def test_what_once_went_wrong(seed):
    case = Case(seed)
    reference = case.reference(np.linspace(0, case.t_end, 6))
    assert outcome(case, case.system(), "auto", campaign.tolerance_of(seed), reference)["result"] == "right"


def test_there_are_two_hundred_structures():
    assert len({draw(np.random.default_rng(seed)).name for seed in range(300)}) >= 200


def test_what_is_wrong_is_called_so():
    """The reference is of another system, with two per mille more force."""
    case = Case(43)
    system, force = case.system(), case.part.force
    times = np.linspace(0, case.t_end, 6)
    assert outcome(case, system, "auto", 1e-6, case.reference(times))["result"] == "right"
    case.part.force = lambda *given: 1.002 * force(*given)
    assert outcome(case, system, "auto", 1e-6, case.reference(times))["result"] == "silent"


@pytest.mark.parametrize("end", ["crash", "hang"])
def test_crashes_and_hangs_are_recorded(end, tmp_path, monkeypatch):
    """And the campaign goes on: with the other method, and with the next system."""
    script = tmp_path / "worker.py"
    script.write_text(BAD_WORKER, encoding="utf-8")
    monkeypatch.setattr(campaign, "WORKER", [sys.executable, str(script), end])
    monkeypatch.setattr(campaign, "LONGEST", 2.0)
    records = {record["seed"]: record["outcomes"] for record in campaign.campaign([0, 1, 2])}
    assert {seed: [found["result"] for found in outcomes.values()] for seed, outcomes in records.items()} == {
        0: ["right", "right"],
        1: [end, "right"],
        2: ["right", "right"],
    }


def test_a_campaign_goes_on_where_it_ended(tmp_path, monkeypatch):
    script, out = tmp_path / "worker.py", tmp_path / "campaign.jsonl"
    script.write_text(BAD_WORKER, encoding="utf-8")
    monkeypatch.setattr(campaign, "WORKER", [sys.executable, str(script), "crash"])
    for systems in (2, 4, 4):
        campaign.run(argparse.Namespace(out=out, systems=systems, seed=0, minutes=1.0, jobs=1))
    assert [record["seed"] for record in campaign.read_records(out)] == [0, 1, 2, 3]
    table = campaign.report(out)
    assert "4 systems of 1 structures, 8 runs. In 0 of them" in table
    assert "| auto | 4 | 3 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |" in table
