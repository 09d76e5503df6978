"""Every public name explains itself, with an example that does what it says."""

import doctest
import inspect

import pytest

import holonome as hn

MODULES = {"bushing": hn.bushing, "mechanisms": hn.mechanisms, "papers": hn.papers}
NAMES = {name: getattr(hn, name) for name in hn.__all__ if not inspect.ismodule(getattr(hn, name))}
NAMES |= {
    f"bushing.{name}": getattr(hn.bushing, name)
    for name in ("deformation_2d", "deformation_3d", "forces_2d", "forces_3d")
}
NAMES |= {
    f"mechanisms.{name}": getattr(hn.mechanisms, name)
    for name in ("Example", "Reference", "available", "get")
}
RETURNED = {"Animation", "Comparison", "Trial"}
"""What the examples of the functions show that return it."""

NAMES |= {f"papers.{name}": getattr(hn.papers, name) for name in ("available", "get")}


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_is_right(name, tmp_path, monkeypatch):
    """Of the object and of its methods; each is run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    found = [
        test
        for test in doctest.DocTestFinder(recurse=True).find(NAMES[name], name, globs={})
        if test.examples
    ]
    assert name in RETURNED or any(test.name == name for test in found), f"{name} has no example"
    for test in found:
        told: list[str] = []
        failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
        assert not failed, "".join(told)


@pytest.mark.parametrize("name", MODULES)
def test_what_a_public_module_offers_is_explained(name):
    for key, value in vars(MODULES[name]).items():
        if not key.startswith("_") and inspect.isroutine(value) and value.__module__.startswith("holonome"):
            assert inspect.getdoc(value), f"{name}.{key}"
