"""A window with a row pattern to `QueryDefinition`: what stands behind OVER or WINDOW w AS, as in SQL:2016 (R020).

What a window may not have is said here, with the reason; names are checked by analysis, which knows the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lark import Token, Tree
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import QuerySyntaxError
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, RowsPerMatch, Selection, Strategy
from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.ir.pattern import anchors_in
from kleene.ir.query import Frame, QueryDefinition
from kleene.lang.expressions import Children, Name, build, check_is_text, span_of
from kleene.lang.match_recognize import ClauseBuilder, HiddenColumn, within_parentheses
from kleene.schema import INTEGER
from kleene.source import NO_SPAN, SourceText, Span

_GRAMMARS = ("expressions", "row_pattern", "match_recognize", "pattern_window")
_WRITE = "Write: ROWS BETWEEN CURRENT ROW AND, then CURRENT ROW, n FOLLOWING or UNBOUNDED FOLLOWING."
_ADD = "Add: PATTERN (A B+)"
_OF_PATTERNS = {
    "measures": "MEASURES",
    "after_match": "AFTER MATCH",
    "seeking": "INITIAL or SEEK",
    "subsets": "SUBSET",
    "definitions": "DEFINE",
}
_OF_MATCHES = {
    "one_row": "ONE ROW PER MATCH",
    "all_rows": "ALL ROWS PER MATCH",
    "all_matches": "ALL MATCHES",
    "within_time": "WITHIN",
    "within_rows": "WITHIN",
    "within_number": "WITHIN",
    "within_parameter": "WITHIN",
    "max_length": "MAXLENGTH",
}
"""Clauses by the rules of the grammar that read them."""
Bound = tuple[str, ir.Expr | None]


def parse(text: str, functions: Mapping[str, Own] = NO_FUNCTIONS) -> QueryDefinition:
    """The window; parentheses may stand around it.

    >>> parse("ORDER BY t ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING PATTERN (A B+)").frame.end.value
    5
    """
    check_is_text(text)
    definition, base = parse_within(SourceText(text), within_parentheses(text, ""), functions=functions)
    if base is not None:
        raise QuerySyntaxError(
            f"the window '{base}' is not known here",
            definition.source.locate(base.span),
            "A window stands alone outside of SQL: write its PARTITION BY and ORDER BY out.",
        )
    return definition


def parse_within(
    source: SourceText,
    text: str,
    hidden: Mapping[str, HiddenColumn] | None = None,
    functions: Mapping[str, Own] = NO_FUNCTIONS,
) -> tuple[QueryDefinition, Name | None]:
    """The window in `text`, which is the source with all before it made blank; and the window that it inherits from.

    `hidden` are names in it that stand for columns which were added to the input.
    """
    if not text.strip():
        raise QuerySyntaxError("the window is empty", hint=_ADD)
    found: tuple[QueryDefinition, Name | None] = build(
        _Builder(source, hidden, functions), _GRAMMARS, "specification", text
    )
    return found


@v_args(meta=True)
class _Builder(ClauseBuilder):
    """A method per rule of pattern_window.lark."""

    clauses = (
        *("PARTITION BY", "ORDER BY", "MEASURES", "ROWS BETWEEN", "AFTER MATCH SKIP", "INITIAL", "SEEK"),
        *("PATTERN", "SUBSET", "DEFINE"),
    )

    def look_through(self, tree: Tree[Token]) -> None:
        super().look_through(tree)
        self._places = {str(node.data): span_of(node.meta) for node in tree.children if isinstance(node, Tree)}

    def specification(self, _: Meta, children: Children) -> tuple[QueryDefinition, Name | None]:
        base, *parts = children
        said: dict[str, Any] = {}
        for part in parts:
            said |= part or {}
        if "pattern" not in said:
            raise self._without_pattern()
        self._refuse_clauses()
        frame = said.pop("frame", None)
        if frame is None:
            raise self._wrong_frame(self._places["pattern_clause"])
        definition = QueryDefinition(
            said.pop("pattern"),
            strategy=Strategy.PARTITION_CONTIGUITY,
            selection=Selection.PREFERRED,
            measures=said.pop("measures", ()),
            after_match=said.pop("after_match", AfterMatch()),
            rows_per_match=RowsPerMatch.EACH_ROW,
            frame=replace(frame, seeks=said.pop("seeks", False)),
            hidden=self.hidden_columns,
            source=self.source,
            **said,
        )
        self._check_pattern(definition)
        return definition, base

    def _without_pattern(self) -> Exception:
        for rule, words in _OF_PATTERNS.items():
            if rule in self._places:
                return self.fail(f"{words} belongs to a PATTERN, but the window has none", self._places[rule], _ADD)
        return self.fail("the window has no PATTERN", NO_SPAN, _ADD)

    def _refuse_clauses(self) -> None:
        for rule, words in _OF_MATCHES.items():
            if rule in self._places:
                raise self.fail(
                    f"{words} has no place in a window, which gives one row for each row",
                    self._places[rule],
                    "Leave it out; to bound a match, write n FOLLOWING.",
                )

    def _check_pattern(self, definition: QueryDefinition) -> None:
        for anchor in anchors_in(definition.pattern):
            raise self.illegal(
                "an anchor is illegal here: a window has no partition start or end to anchor to",
                anchor.span,
                "Leave ^ and $ out.",
            )
        conditions = [item.condition for item in definition.definitions]
        for expression in (*conditions, *(item.expression for item in definition.measures or ())):
            for node in ir.walk(expression):
                if isinstance(node, ir.MatchNumber):
                    raise self.illegal(
                        "MATCH_NUMBER() is illegal here: matches of a window are not numbered", node.span
                    )

    # --- the frame ---------------------------------------------------------------------------------------------------

    def frame(self, meta: Meta, children: Children) -> dict[str, Any]:
        unit, _, (first, _), _, (last, end), exclusion = children
        self._check_unit(unit)
        if exclusion is not None:
            raise self.fail("EXCLUDE is illegal here: the match decides which rows count", exclusion)
        if first != "current row" or last == "preceding":
            raise self._wrong_frame(span_of(meta))
        return {"frame": Frame(end, span=span_of(meta))}

    def short_frame(self, meta: Meta, children: Children) -> dict[str, Any]:
        self._check_unit(children[0])
        raise self._wrong_frame(span_of(meta))

    def _check_unit(self, unit: Token) -> None:
        if unit.upper() != "ROWS":
            raise self.fail(f"{unit.upper()} is illegal here: a pattern needs a frame in ROWS", span_of(unit), _WRITE)

    def _wrong_frame(self, span: Span) -> Exception:
        return self.fail("the frame of a pattern is written ROWS BETWEEN CURRENT ROW AND …", span, _WRITE)

    def unbounded_following(self, *_: object) -> Bound:
        return "following", None

    def current_row(self, meta: Meta, _: Children) -> Bound:
        return "current row", ir.Literal(0, INTEGER, span=span_of(meta))

    def rows_following(self, _: Meta, children: Children) -> Bound:
        return "following", self.checked(children[0])

    def preceding(self, *_: object) -> Bound:
        return "preceding", None

    def frame_exclusion(self, meta: Meta, _: Children) -> Span:
        return span_of(meta)

    def seeking(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"seeks": children[0].type == "SEEK"}
