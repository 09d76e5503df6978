"""Equations of mechanisms, which their modules state in plain Unicode, are formulas in the docs."""

import importlib.util
import sys
from pathlib import Path

import pytest

import holonome as hn

SPEC = importlib.util.spec_from_file_location(
    "formulas", Path(__file__).parents[2] / "docs" / "_ext" / "formulas.py"
)
assert SPEC is not None
formulas = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(formulas)  # type: ignore[union-attr]

ONLY_DRAWN = {"double_wishbone", "whipple_bicycle"}
"""What they state are bodies and data."""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("xᵢ″ = −λ", r"x_{i}^{\prime\prime} = -λ"),
        ("g₁,₂ = ½ℓ₁²", r"g_{1,2} = \tfrac{1}{2}ℓ_{1}^{2}"),
        ("θ′²", r"θ^{\prime 2}"),
        ("ε⁻² nᵀ, ε^−½", r"ε^{-2}\,n^{T}, ε^{-1/2}"),
        ("√(1 − (a + b)²) v_hub", r"\sqrt{1 - (a + b)^{2}}\,v_{\mathrm{hub}}"),
        ("diag(m, J)", r"\operatorname{diag}(m, J)"),
        ("2 x λ − cos φ", r"2\,x\,λ - \cos \,φ"),
        ("xᵢ₋₁", "x_{i-1}"),
    ],
)
def test_symbols(written, expected):
    assert formulas.latex(written) == expected


def test_words_stay_words():
    assert formulas.latex("it stays on the x axis") == r"\text{ it stays on the }\,x\,\text{ axis }"


def test_equations_beside_a_drawing():
    block = ["O───● m      m x″ = −2 x λ", " ╲           0 = x² − ℓ²", "  ╲"]
    ((drawing, equations),) = formulas.split(block)
    assert drawing == ["O───● m", " ╲", "  ╲"]
    assert equations == ["m x″ = −2 x λ", "0 = x² − ℓ²"]


@pytest.mark.parametrize("name", hn.mechanisms.available())
def test_every_mechanism_has_formulas(name):
    module = sys.modules[f"holonome.mechanisms.{name}"]
    lines = (module.__doc__ or "").splitlines()
    found = []
    for begin, line in enumerate(lines):
        if line.startswith("    ") and not lines[begin - 1].startswith("    ") and lines[begin - 1] == "":
            end = begin
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
                end += 1
            block = [text[4:] for text in lines[begin:end]]
            found += [equations for _, equations in formulas.split(block) if equations]
    assert found or name in ONLY_DRAWN
    for equations in found:
        text = formulas.display(equations)
        assert text.count("{") == text.count("}")
        assert not any(formulas.is_drawn([line]) for line in equations)
