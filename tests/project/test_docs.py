"""The pages tell the truth: their code runs, prints what they say, their commands exist, their links lead
somewhere, and their recipes are the examples.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from holonome.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not {"_build", "_generated", "gallery"} & set(page.parts)
    ),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
RECIPE = re.compile(r"examples/(\w+\.py)\)[^`]*```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROUNDING = 1e-9


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language and text of each block, and what stands between it and the block before."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in BLOCK.finditer(text):
        found.append((match[1], match[2], text[end : match.start()]))
        end = match.end()
    return found


def pages_with(language: str) -> list:
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(kind == language for kind, _, _ in blocks(page))
    ]


def assert_same_output(told: str, printed: str) -> None:
    """Equal words; equal numbers but for a tenth, small ones such as 3e-08 but for a factor of five, or for
    rounding where both are tiny.
    """
    words = [re.sub(r"[\[\]]", " ", NUMBER.sub("#", text)).split() for text in (told, printed)]
    assert words[0] == words[1], printed
    for text, other in zip(NUMBER.findall(told), NUMBER.findall(printed), strict=True):
        a, b = sorted((abs(float(text)), abs(float(other))))
        assert b - a <= 0.1 * b or b < ROUNDING or ("e-" in text and b <= 5 * a), printed


@pytest.mark.parametrize("page", pages_with("python"))
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg")
def test_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """One block after the other in one namespace, in an empty folder; a text block behind one is what it
    prints.
    """
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "page"}, ""
    for language, code, between in blocks(page):
        if language == "python":
            exec(compile(code, f"{page.name}: {code.splitlines()[0]}", "exec"), namespace)
            printed = capsys.readouterr().out
        elif language == "text" and not between.strip():
            assert_same_output(code, printed)


@pytest.mark.parametrize("page", pages_with("sh"))
def test_commands_of_a_page_exist(page):
    """Parsed with all their options and arguments, not run."""
    group = typer.main.get_command(app)
    lines = "".join(code for language, code, _ in blocks(page) if language == "sh").splitlines()
    for command in (command for line in lines for command in line.partition("#")[0].split(";")):
        words = shlex.split(command)
        if words[:1] != ["holonome"] or words[1:] in ([], ["--help"]):
            continue
        assert words[1] in group.commands, command
        group.commands[words[1]].make_context(words[1], words[2:])


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_links_between_files_lead_somewhere(page):
    made_at_build = ("gallery/", "_generated/")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target and not any(part in target for part in made_at_build):
            assert (page.parent / target).exists(), target


def test_recipes_are_the_examples():
    """What a page shows of an example, right behind a link to it, is part of it; every example is shown by a
    page, or is one of its own.
    """
    shown = set()
    for page in PAGES:
        for name, code in RECIPE.findall(page.read_text(encoding="utf-8")):
            assert code in (ROOT / "examples" / name).read_text(encoding="utf-8"), f"{page.name}: {name}"
            shown.add(name)
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == shown | {
        "watt_linkage.py",
        "five_bar_robot.py",
        "stokes_flow.py",
        "driven_cavity.py",
        "energy.py",
        "many_pendulums.py",
        "four_bar.py",
        "stewart_platform.py",
        "prescribed_path.py",
    }


def test_tables_of_the_pages_are_what_was_measured():
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "tables.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: python benchmarks/tables.py"


def test_messages_that_a_page_explains_exist():
    """Every piece of a quoted message, between the places of names and numbers, stands in the source."""
    source = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    quoted = re.findall(
        r"`([^`]+)`",
        "\n".join(
            re.findall(
                r"^(`.*)\n: ",
                (ROOT / "docs" / "howto" / "messages.md").read_text(encoding="utf-8"),
                re.MULTILINE,
            )
        ),
    )
    assert len(quoted) > 60
    for message in quoted:
        pieces = [
            piece.strip(" ()[]':;,.=")
            for piece in re.split(r"…|dop853, then bdf|ZeroDivisionError|t = 0, q = ", message)
        ]
        missing = [piece for piece in pieces if len(piece) > 8 and piece not in source]
        assert not missing, message
