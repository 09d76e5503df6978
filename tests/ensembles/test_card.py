"""The loop for graphics cards: PTX is made and well formed; where there is a card, it computes the same."""

import shutil
import subprocess

import numpy as np
import pytest

import holonome as hn
from holonome.ensembles import lane_loop
from holonome.ensembles.study import Study
from holonome.machine.cuda import CardError, available
from holonome.machine.elementary import FUNCTIONS
from holonome.machine.lanes import Lanes
from holonome.machine.llvm import Writer
from holonome.machine.ptx import ptx

pytest.importorskip("xarray")

MODELS = {"pendulum": {"gravity": [9.0, 10.0]}, "slider_crank": {"gravity": [9.0, 10.0]}}


def study_of(name, **options) -> Study:
    made = getattr(hn.mechanisms, name)()
    return hn.ensemble(made, (0, 10), over=MODELS[name], **options).study


@pytest.mark.parametrize("name", MODELS)
def test_everything_is_in_line_and_in_registers(name, tmp_path):
    study = study_of(name, t_eval=[5, 10], until=lambda q: q[0] - 100)
    source = ptx(study.plan().assembly(1, card=True), "sm_80")
    assert source.count(".entry march") == 1
    assert ".local" not in source
    assert "call" not in source
    compiler = shutil.which("ptxas")
    if compiler:
        (tmp_path / "march.ptx").write_text(source)
        command = [compiler, "-arch=sm_80", str(tmp_path / "march.ptx"), "-o", str(tmp_path / "march.o")]
        assert subprocess.run(command, capture_output=True).returncode == 0


def test_functions_that_are_missing_on_a_card_are_told():
    system = hn.System(1.0, lambda q: [-hn_erf(q[0])], n=1)
    plan = hn.ensemble(system, (0, 1), [1.0], over={"t_end": [1, 2]}).study.plan()
    with pytest.raises(NotImplementedError, match="erf"):
        plan.assembly(1, card=True)


def hn_erf(x):
    import math

    return math.erf(x)


@pytest.mark.skipif(available(), reason="there is a card")
def test_without_a_card_the_remedy_is_told():
    e = hn.ensemble(hn.mechanisms.pendulum(), (0, 1), over={"m": [1.0]}, device="cuda")
    with pytest.raises(CardError, match="device='cpu'"):
        e.run()


@pytest.mark.skipif(not available(), reason="there is no card")
@pytest.mark.parametrize("name", MODELS)
def test_a_card_computes_what_lanes_do(name):
    made = getattr(hn.mechanisms, name)()
    found = [
        hn.ensemble(made, (0, 10), over=MODELS[name], rtol=1e-10, t_eval=[5, 10], device=device).run()
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(found[0].q.values, found[1].q.values, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_the_code_for_cards_computes_the_same_on_this_processor(name, monkeypatch):
    study = study_of(name, rtol=1e-10, t_eval=[5, 10])
    monkeypatch.setattr(lane_loop, "_lanes", lambda width, card: card_lanes(width))
    rows = []
    for width in (1, 4):
        loop = lane_loop.LaneLoop(study.plan(), width)
        rows.append(study.rows(0, 2, lambda job, loop=loop: loop(job, np.zeros(1, np.int64))))
    np.testing.assert_allclose(rows[0].kept["q"], rows[1].kept["q"], atol=1e-9)
    usual = study.rows(0, 2, None)
    np.testing.assert_allclose(rows[0].kept["q"], usual.kept["q"], atol=1e-6)


def card_lanes(width):
    return Lanes(Writer(), width, align=8 * width, functions=FUNCTIONS, library=False)
