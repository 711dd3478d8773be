"""The text inside PATTERN ( … ), and the pattern of the regular-expression operator, to the patterns of the IR."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError
from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.ir.pattern import Alternation, Anchor, Exclusion, Pattern, Permutation, Repeat, Sequence, Variable
from kleene.lang.expressions import MOST_COMPONENTS, Children, ExpressionBuilder, Name, span_of
from kleene.source import SourceText, Span

MOST_REPETITIONS = 1_000
MOST_PERMUTED = 8

_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@v_args(meta=True)
class PatternBuilder(ExpressionBuilder):
    """A method per rule of row_pattern.lark."""

    def __init__(self, source: SourceText, functions: Mapping[str, Own] = NO_FUNCTIONS) -> None:
        super().__init__(source, functions)
        self._variables = 0

    def variable_name(self, name: Name) -> str:
        """The name that a variable goes by; SQL folds those without quotes."""
        return str(name)

    def row_pattern(self, meta: Meta, children: Children) -> Pattern:
        return children[0] if children[0] is not None else Sequence((), span=span_of(meta))

    def alternation(self, meta: Meta, children: Children) -> Pattern:
        return Alternation(tuple(child or Sequence(()) for child in children), span=span_of(meta))

    def concatenation(self, meta: Meta, children: Children) -> Pattern:
        found: Pattern = children[0] if len(children) == 1 else Sequence(tuple(children), span=span_of(meta))
        return found

    def pattern_name(self, _: Meta, children: Children) -> Name:
        return Name(children[0])

    def pattern_variable(self, meta: Meta, children: Children) -> Pattern:
        self._variables += 1
        if self._variables > MOST_COMPONENTS:
            raise self.fail(f"the pattern has more than {MOST_COMPONENTS:,} variables", span_of(meta))
        name: Name = children[0]
        return Variable(self.variable_name(name), name_span=name.span, span=span_of(meta))

    def group(self, _: Meta, children: Children) -> Pattern:
        found: Pattern = children[0]
        return found

    def permute(self, meta: Meta, children: Children) -> Pattern:
        elements = tuple(children[1:])
        if None in elements:
            raise self.fail("PERMUTE needs patterns to permute", span_of(meta), "Write: PERMUTE(A, B)")
        if len(elements) > MOST_PERMUTED:
            raise self.fail(
                f"PERMUTE takes at most {MOST_PERMUTED} patterns: there are {len(elements)}! orders", span_of(meta)
            )
        return Permutation(elements, span=span_of(meta))

    def permuted(self, _: Meta, children: Children) -> Pattern | None:
        found: Pattern | None = children[0]
        return found

    def exclude(self, meta: Meta, children: Children) -> Pattern:
        return Exclusion(children[1], span=span_of(meta))

    def anchor(self, meta: Meta, children: Children) -> Pattern:
        return Anchor(children[0] == "^", span=span_of(meta))

    def wildcard(self, meta: Meta, children: Children) -> Pattern:
        raise self.fail("'.' is not a pattern here", span_of(meta), "A variable without DEFINE matches any row.")

    def repeat(self, meta: Meta, children: Children) -> Pattern:
        element, quantifier = children
        text = re.sub(r"\s", "", quantifier)
        return self.repeated(element, text, span_of(meta), quantifier)

    def repeated(self, element: Pattern, text: str, span: Span, quantifier: Token) -> Pattern:
        """The element under a quantifier: * + ? {n} {n,} {,m} {n,m} {,}, each with ? behind it to prefer fewer."""
        greedy = not (text.endswith("?") and len(text) > 1)
        least, most = self._bounds(text if greedy else text[:-1], quantifier)
        return Repeat(element, least, most, greedy, span=span)

    def _bounds(self, text: str, quantifier: Token) -> tuple[int, int | None]:
        if text in _QUANTIFIERS:
            return _QUANTIFIERS[text]
        low, comma, high = text[1:-1].partition(",")
        if not (low or comma):
            raise self.fail(
                "a quantifier in braces needs a number", span_of(quantifier), "Write {2}, {2,}, {,3}, {2,3} or {,}."
            )
        least = int(low or 0)
        most = int(high) if high else None if comma else least
        if max(least, most or 0) > MOST_REPETITIONS:
            raise self.fail(f"a quantifier goes up to {MOST_REPETITIONS:,}", span_of(quantifier))
        if most is not None and (most < least or most == 0):
            raise AnalysisError(
                f"the quantifier {text} allows nothing" if most else f"the quantifier {text} matches no row at all",
                self.source.locate(span_of(quantifier)),
                "The upper bound must be at least 1, and not below the lower bound.",
            )
        return least, most
