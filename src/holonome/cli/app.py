"""The application to which the commands belong: help, exit codes, error messages of one sentence."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import holonome

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
_EXIT_CODES = (
    "Exit codes: 0 done, 1 something failed (a run, a check, a file), 2 wrong usage, 130 interrupted."
)


class _PlainFlags:
    """Help in which flags take no value; typer would append <bool>."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainFlags, TyperCommand):
    """A command."""


class _Commands(_PlainFlags, TyperGroup):
    """Commands whose errors are one sentence on stderr."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = ["demo", "new", "run", "study", "animate", "compare", "equilibrium", "modes", "response"]
        order += ["reproduce", "mechanisms", "methods", "doctor"]
        return sorted(
            super().list_commands(ctx),
            key=lambda name: order.index(name) if name in order else len(order),
        )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            is_for_typer = isinstance(error, (typer.Abort, BrokenPipeError)) or hasattr(error, "exit_code")
            if is_for_typer or ctx.params.get("traceback"):
                raise
            expected = isinstance(error, (ValueError, OSError, ImportError))
            text = (
                str(error).replace("repair=True", "--repair")
                if expected
                else f"{type(error).__name__}: {error} (--traceback shows where)"
            )
            fail(text, USAGE if isinstance(error, ValueError) else FAILED)


app = typer.Typer(
    cls=_Commands,
    name="holonome",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()


def fail(text: str, code: int) -> None:
    """Print an error message of one line, and exit."""
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("error: ", style="bold red") + Text(text)
    )
    raise typer.Exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"holonome {holonome.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop."),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the whole traceback of an error.")
    ] = False,
) -> None:
    """Simulate mechanical systems with constraints, without drift.

    Begin with: holonome demo
    """
