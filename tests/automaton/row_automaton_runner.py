"""Runs a row automaton by backtracking along its ordered edges: a check that preference survives the construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kleene.automaton.row_pattern import RowAutomaton


def ways(
    automaton: RowAutomaton, start: int, count: int, fits: Callable[[tuple[str, ...], str], bool]
) -> Iterator[tuple[str, ...]]:
    """The classifications from the start row on, most preferred first; `fits` decides about the next row's variable."""
    untried: list[tuple[int | None, tuple[str, ...]]] = []

    def push(edges, path: tuple[str, ...]) -> None:
        row = start + len(path)
        for edge in reversed(edges):
            if (edge.at_start and row != 0) or (edge.at_end and row != count):
                continue
            untried.append((edge.target, path))

    push(automaton.start, ())
    while untried:
        target, path = untried.pop()
        if target is None:
            yield path
            continue
        variable = automaton.states[target].variable
        if start + len(path) < count and fits(path, variable):
            push(automaton.following[target], (*path, variable))
