"""The page "What we promise": every promise names tests, and they exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"(\w+/\w+\.py)::(\w+)", PAGE)))


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_named_tests_exist(file, test):
    assert test in names_in(file)


def test_every_promise_names_a_test():
    """In a list up to the section on the campaign, every item; in the table, every row."""
    promises = PAGE.partition("## How it is tried")[0]
    lines = [line for line in promises.splitlines() if line.startswith(("- ", '| "'))]
    assert len(lines) > 20
    assert [line for line in lines if "::test_" not in line] == []
