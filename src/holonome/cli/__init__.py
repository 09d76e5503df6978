"""The command ``holonome``: a demo, runs of mechanisms and of your own models, comparisons of methods,
studies, animations, reproduction of the papers.

Each command has its own file. Modules that take long to load are imported inside the functions that need
them, so that ``--help`` and completion respond at once.
"""

from holonome.cli import analysis, animate, compare, demo, doctor, lists, new, reproduce, run, study
from holonome.cli.app import app, main

__all__ = [
    "analysis",
    "animate",
    "app",
    "compare",
    "demo",
    "doctor",
    "lists",
    "main",
    "new",
    "reproduce",
    "run",
    "study",
]
