"""Runs a row automaton by backtracking along its ordered edges: a check that preference survives the construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kleene.automaton.model import AtEnd, AtStart, Automaton, parts_of


def ways(
    automaton: Automaton, start: int, count: int, fits: Callable[[tuple[str, ...], str], bool]
) -> Iterator[tuple[str, ...]]:
    """The classifications from the start row on, most preferred first; `fits` decides about the next row's variable."""
    untried: list[tuple[int, tuple[str, ...]]] = []

    def push(state: int, path: tuple[str, ...]) -> None:
        row = start + len(path)
        for edge in reversed(automaton.edges[state]):
            parts = parts_of(edge.formula)
            if (AtStart() in parts and row != 0) or (AtEnd() in parts and row != count):
                continue
            untried.append((edge.target, path))

    push(0, ())
    while untried:
        target, path = untried.pop()
        if target == automaton.final:
            yield path
            continue
        variable = automaton.states[target].variable
        if start + len(path) < count and fits(path, variable):
            push(target, (*path, variable))
