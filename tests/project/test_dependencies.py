"""What is declared as the oldest allowed version of a dependency is what CI tries."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_oldest_versions_are_those_that_are_tried():
    """Of all extras but the tools of developers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    tried_extras = [extra for extra in extras if extra not in ("lint", "docs")]
    requirements = [*project["dependencies"], *(one for extra in tried_extras for one in extras[extra])]
    declared = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", one).groups()  # type: ignore[union-attr]
        for one in dict.fromkeys(requirements)
        if not one.startswith("holonome[")
    )
    lines = (ROOT / ".ci" / "oldest.txt").read_text("utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert tried.keys() == declared.keys()
    for name, version in declared.items():
        assert f"{tried[name]}.".startswith(f"{version}."), name
    assert "://" not in "".join(lines)
