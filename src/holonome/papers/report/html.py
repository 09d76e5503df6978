"""Pieces of HTML: elements, and text and numbers as they stand on the page."""

from __future__ import annotations

import math
import re
from html import escape


def number_text(value: float) -> str:
    """Two or three digits of a float; integers as they are."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        text = str(value).replace("nan", "NaN")
    elif 1e-2 <= abs(value) < 1e4:
        text = f"{value:#.3g}".removesuffix("0").removesuffix(".") if abs(value) < 100 else f"{value:.0f}"
    else:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        text = f"{mantissa.removesuffix('0')}e{int(exponent)}"
    return text.replace("-", "−")


def tag(name: str, *inside: str, **attributes: str | bool | None) -> str:
    """An element. Attributes are escaped, what is inside is HTML already; `class_` is class, `data_value`
    data-value, True an attribute without a value.
    """
    given = {
        key.rstrip("_").replace("_", "-"): value
        for key, value in attributes.items()
        if value not in (None, False)
    }
    told = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in given.items()
    )
    return f"<{name}{told}>{''.join(inside)}</{name}>"


def prose(text: str) -> str:
    """Escaped text; `names`, x_i, x_{i+1} and x^2 are set as such, 1e-06 becomes 1e−6."""

    def plain(part: str) -> str:
        part = re.sub(r"(?<=\d)e([-+])0?(?=\d)", lambda found: "e" if found[1] == "+" else "e−", part)
        part = re.sub(
            r"(?<=\w)_(?:\{([^}]*)\}|(\w)(?!\w))", lambda found: tag("sub", found[1] or found[2]), part
        )
        return re.sub(
            r"\^(?:\(([^)]*)\)|([-−]?\d+(?:\.\d+)?))", lambda found: tag("sup", found[1] or found[2]), part
        )

    return "".join(
        tag("code", part) if i % 2 else plain(part) for i, part in enumerate(escape(text).split("`"))
    )


def capital(text: str) -> str:
    """With a capital letter, unless it begins with a symbol."""
    return text[:1].upper() + text[1:] if re.match("[a-z]{2}", text) else text


def anchor(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name)
