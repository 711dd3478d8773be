"""A query as it was said, whatever language said it: the value that front ends make and analysis reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.ir.expr import Expr, Literal
from kleene.ir.options import Strategy, Window
from kleene.ir.pattern import Sequence
from kleene.source import NO_SPAN, SourceText, Span


@dataclass(frozen=True, slots=True)
class EquivalenceTest:
    """`[id]`: all events of the match agree on the attribute; `[id = 'x']`: and it is the constant."""

    attribute: str
    constant: Literal | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """A named value of the match: an item of RETURN."""

    name: str
    expression: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    pattern: Sequence
    predicates: tuple[Expr, ...] = ()
    equivalence_tests: tuple[EquivalenceTest, ...] = ()
    strategy: Strategy = Strategy.SKIP_TILL_ANY_MATCH
    window: Window | None = None
    having: Expr | None = None
    measures: tuple[Measure, ...] | None = None
    from_stream: str | None = None
    into_stream: str | None = None
    source: SourceText = field(default=SourceText(""), compare=False, repr=False)
    # Where the strategy and the streams stand in the text, for errors about them.
    strategy_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    from_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    into_span: Span = field(default=NO_SPAN, compare=False, repr=False)
