"""The command line: `kleene match`, `kleene sql`, `kleene stream`, `kleene check`, `kleene explain`."""

from kleene.cli.verbs import app, main

__all__ = ["app", "main"]
