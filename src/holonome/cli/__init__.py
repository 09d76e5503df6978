"""The command ``holonome``: see it work, run a mechanism or a model of one's own, compare methods, animate,
reproduce the papers.

One command is one file here. What takes long to load is imported inside the functions that need it, so that
``--help`` and completion answer at once.
"""

from holonome.cli import animate, compare, demo, doctor, lists, new, reproduce, run
from holonome.cli.app import app, main

__all__ = ["animate", "app", "compare", "demo", "doctor", "lists", "main", "new", "reproduce", "run"]
