"""The command line: `kleene match`, `kleene sql`, `kleene stream`, `kleene check`, `kleene explain` and others."""

from kleene.cli import pictures
from kleene.cli.verbs import app, main

__all__ = ["app", "main", "pictures"]
