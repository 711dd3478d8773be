"""A query as it was said, whatever language said it: the value that front ends make and analysis reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.ir.expr import Expr, Literal, Parameter
from kleene.ir.options import AfterMatch, Grouping, RowsPerMatch, Selection, Strategy, Window, WindowParameter
from kleene.ir.pattern import Pattern, Sequence
from kleene.source import NO_SPAN, SourceText, Span


@dataclass(frozen=True, slots=True)
class EquivalenceTest:
    """`[id]`: all events of the match agree on the attribute; `[id = 'x']`: and it is the constant."""

    attribute: str
    constant: Literal | Parameter | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """A named value of the match: an item of RETURN, MEASURES or the regular-expression operator's output.

    `source` is the text that the expression was written in, where that is not the query's.
    """

    name: str
    expression: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    source: SourceText | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SortKey:
    """An item of ORDER BY. Where the user said where NULLs go, they may be there; else a NULL is an error."""

    expression: Expr
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """An item of DEFINE, or a predicate of the regular-expression operator: when a row may be the variable's."""

    variable: str
    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    source: SourceText | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subset:
    """SUBSET: a name for the rows of several variables."""

    name: str
    variables: tuple[str, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    variable_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a window shows to the match of a row: from it on, `end` rows more, or, if that is None, all.

    `seeks` says that the match may begin behind the row.
    """

    end: Expr | None
    seeks: bool = False
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """What to look for, and how.

    SASE says its conditions as `predicates` and `equivalence_tests`; row patterns and the regular-expression operator
    as `definitions` by variable and as `partition_by`, and they bring their own order. `selection` says whose meaning
    of a match counts.
    """

    pattern: Pattern
    predicates: tuple[Expr, ...] = ()
    equivalence_tests: tuple[EquivalenceTest, ...] = ()
    strategy: Strategy = Strategy.SKIP_TILL_ANY_MATCH
    window: Window | None = None
    window_parameter: WindowParameter | None = None  # until a call binds it
    having: Expr | None = None
    measures: tuple[Measure, ...] | None = None
    grouping: Grouping | None = None  # where measures are over all matches, and not of each
    from_streams: tuple[str, ...] = ()  # none is the input of the program
    into_stream: str | None = None
    selection: Selection = Selection.EVERY_RUN
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    definitions: tuple[Definition, ...] = ()
    subsets: tuple[Subset, ...] = ()
    after_match: AfterMatch | None = None
    rows_per_match: RowsPerMatch = RowsPerMatch.ONE
    max_length: int | None = None
    frame: Frame | None = None  # of a window with a row pattern
    hidden: tuple[str, ...] = ()  # columns that were added to the input for its subqueries
    source: SourceText = field(default=SourceText(""), compare=False, repr=False)
    # Where the strategy and the streams stand in the text, for errors about them.
    strategy_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    from_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    into_span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def components(self) -> tuple[Pattern, ...]:
        """The components of a SASE pattern."""
        assert isinstance(self.pattern, Sequence)
        return self.pattern.elements
