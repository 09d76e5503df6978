"""The loop for graphics cards: PTX is made and well formed; where there is a card, it computes the same."""

import shutil
import subprocess

import numpy as np
import pytest

import holonome as hn
from holonome.ensembles.study import Study
from holonome.machine.cuda import CardError, available
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
