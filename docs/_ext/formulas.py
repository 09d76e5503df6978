r"""Equations in plain Unicode, as the modules of mechanisms state them, as LaTeX.

    xᵢ″ = −2 λ cos φ     becomes     x_{i}^{\prime\prime} = −2 λ \cos φ

Beside a drawing they stand in a column of their own; what stands left of it is the drawing.  Whatever lies
two spaces or more apart stays apart, and words stay words.
"""

import re
from collections import Counter

FUNCTIONS = {"sin", "cos", "tan", "exp", "arcsin"}
OPERATORS = {"sn", "cn", "dn", "diag"}
OPERATORS_AROUND = set("=+−/·×±∓<≤,:;.…*")
"""Signs beside which a space is no product."""

SYMBOLS = {"ss", "zt", "zf", "rr", "mom", "mod"}
"""Names of more than one letter that are no words."""

LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼ₊₋", "0123456789aeoxhklmnpstij+-")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ", "0123456789+-T")
SIGNS = {"½": r"\tfrac{1}{2}", "⅔": r"\tfrac{2}{3}", "⅓": r"\tfrac{1}{3}", "¼": r"\tfrac{1}{4}"}
SIGNS |= {"−": "-", "{": r"\{", "}": r"\}", "%": r"\%", "°": r"^{\circ}", "…": r"\ldots "}
DRAWN = re.compile(r"[─-◿☉⌇⟋]|_{3}|-{3}|- -|~~|\. \.")

TOKEN = re.compile(
    r"(?P<low>[₀-₉ₐ-ₜᵢⱼ₊₋](?:,?[₀-₉ₐ-ₜᵢⱼ₊₋])*)"
    r"|(?P<high>(?:[′″⁰¹²³⁴-⁹⁺⁻ᵀ]|\^[−-]?(?:\w|½)+)+)"
    r"|(?P<index>_[A-Za-z]+)"
    r"|(?P<word>\ba(?= (?!sin|cos|tan)[a-z]{3})|(?:\b[a-z]-)?[A-Za-z][A-Za-z']+(?: [A-Za-z][A-Za-z']+)*)"
    r"|(?P<root>√)"
    r"|(?P<code>`[^`]+`)"
    r"|(?P<other>.)"
)
SMALL = {"of", "in", "by", "on", "to", "at", "is", "it", "no", "as", "or", "an", "be", "up", "so", "if"}


def latex(text: str) -> str:
    """One piece of text, as LaTeX."""
    out, place = "", 0
    while place < len(text):
        match = TOKEN.match(text, place)
        assert match is not None
        place = match.end()
        kind, found = match.lastgroup, match[0]
        if kind == "low":
            out += "_{" + found.translate(LOWERED) + "}"
        elif kind == "high":
            out += "^{" + _raised(found) + "}"
        elif kind == "index":
            name = found[1:]
            out += "_{" + (name if len(name) == 1 else rf"\mathrm{{{name}}}") + "}"
        elif kind == "word":
            out += " ".join(_word(word) for word in _grouped(found))
        elif kind == "code":
            out += rf"\text{{{found[1:-1]}}}"
        elif kind == "root":
            end = _end_of_group(text, place)
            inside = text[place + 1 : end - 1] if text[place] == "(" else text[place:end]
            out += rf"\sqrt{{{latex(inside)}}}"
            place = end
        elif found == " ":
            before, behind = text[: match.start()][-1:], text[place : place + 1]
            out += " " if before in OPERATORS_AROUND or behind in OPERATORS_AROUND else r"\,"
        else:
            out += SIGNS.get(found, found)
    return re.sub(r" \}(?=[,;:.)])", "}", re.sub(r" \} +\\text\{ ", " ", out))


def _raised(text: str) -> str:
    text = text.replace("″", r"\prime\prime ").replace("′", r"\prime ").replace("^", "")
    return text.translate(RAISED).replace("½", "1/2").replace("−", "-").strip()


def _grouped(text: str) -> list[str]:
    """Words that follow each other as one piece; functions and symbols by themselves."""
    groups: list[str] = []
    for word in re.split(r" ", text):
        plain = _is_word(word)
        if plain and groups and _is_word(groups[-1].split(" ")[-1]):
            groups[-1] += " " + word
        else:
            groups.append(word)
    return groups


def _is_word(word: str) -> bool:
    if word in SMALL or word == "a":
        return True
    return len(word) > 2 and not word.isupper() and word not in FUNCTIONS | OPERATORS | SYMBOLS


def _word(word: str) -> str:
    if word in FUNCTIONS:
        return rf"\{word} "
    if word in OPERATORS:
        return rf"\operatorname{{{word}}}"
    if word in SYMBOLS:
        return rf"\mathit{{{word}}}"
    return rf"\text{{ {word} }}" if _is_word(word.split(" ")[0]) else word


def _end_of_group(text: str, begin: int) -> int:
    """Behind the parenthesis that closes the one at the beginning, or behind a number or letter."""
    if text[begin] != "(":
        match = re.compile(r"[\d.]+|.").match(text, begin)
        return match.end() if match else begin
    depth = 0
    for place in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def column_of_equations(lines: list[str]) -> int | None:
    """Where equations begin, beside a drawing or from the first column; None if there are none."""
    if not is_drawn(lines):
        return 0 if any("=" in line for line in lines) else None
    begins = Counter(match.start() for line in lines for match in re.finditer(r"(?:(?<=  )|^)\S", line))
    for column in sorted(column for column, count in begins.items() if count > 1):
        right = [line[column:] for line in lines]
        apart = all(line[max(column - 2, 0) : column].strip() == "" for line in lines)
        if apart and any("=" in line for line in right) and not is_drawn(right):
            return column
    return None


def split(lines: list[str]) -> list[tuple[list[str], list[str]]]:
    """A block of a statement, paragraph by paragraph, as drawing and equations."""
    paragraphs = ["\n".join(lines)] if is_drawn(lines) and not _ends(lines) else []
    paragraphs = paragraphs or re.split(r"\n\s*\n", "\n".join(lines))
    return [_split(paragraph.splitlines()) for paragraph in paragraphs]


def _ends(lines: list[str]) -> bool:
    """Whether a drawing ends at an empty line."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
    return len(paragraphs) > 1 and not is_drawn(paragraphs[1:])


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    column = column_of_equations(lines)
    if column is None:
        return lines, []
    drawing = [line[:column].rstrip() for line in lines]
    equations = [line[column:].strip() for line in lines]
    return drawing if any(drawing) else [], [line for line in equations if line]


def is_drawn(lines: list[str]) -> bool:
    """Whether these lines are a drawing rather than words."""
    return any(map(DRAWN.search, lines))


def display(equations: list[str]) -> str:
    """Lines of equations as one formula, a row for each."""
    rows = [
        r" \qquad ".join(re.sub(r"^\\text\{ ", r"\\text{", latex(cell)) for cell in re.split(r" {2,}", line))
        for line in equations
    ]
    return r"\begin{array}{l}" + r" \\ ".join(rows) + r"\end{array}"
