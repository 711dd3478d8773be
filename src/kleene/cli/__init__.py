"""The command line: `kleene match`, `kleene stream`, `kleene check`, `kleene explain`.

Exit codes: 0 done, 1 no match where --fail-if-none asked for one, 2 the command was used wrongly, 3 the query is
wrong, 4 the input does not fit, 5 matching or writing failed, 130 stopped by Ctrl-C, 141 nobody read the output on.
"""

from kleene.cli.verbs import app, main

__all__ = ["app", "main"]
