"""A SELECT in Spark's dialect to one in DuckDB's that means the same.

Only what is known to mean the same in both is let through: statements other than SELECT, tables that nobody gave, and
functions that were not compared are errors. So a text can do nothing but compute, whatever DuckDB may learn to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from kleene.errors import (
    AnalysisError,
    KleeneError,
    QuerySyntaxError,
    UnsupportedError,
    did_you_mean,
    listed,
    printable,
)
from kleene.local_sql.functions import ANONYMOUS, CLASSES, TABLE_FUNCTIONS
from kleene.local_sql.names import name_columns, written_names
from kleene.source import Location
from kleene.sqltext.statement import Excerpt
from kleene.sqltext.tokens import tokens_of

_ARGUMENTS = "See whether all functions have the arguments that they need."
_ON_SPARK = "On Spark, everything that Spark knows is allowed: kleene.sql(spark, text)."


Node: TypeAlias = Any  # of a tree of sqlglot, whose versions have different types for it


class _AnsiSpark(Spark):  # type: ignore[misc]
    """Spark as it is since version 4: a cast that fails is an error, and so is a division by zero."""

    SAFE_DIVISION = False

    class Parser(Spark.Parser):  # type: ignore[misc]
        STRICT_CAST = True


@dataclass(frozen=True, slots=True)
class Translated:
    text: str
    parameters: list[Any] | dict[str, Any] | None
    names: list[str] | None  # of the columns, where the text says them


def translated(excerpt: Excerpt, tables: Mapping[str, str]) -> Translated:
    """The text for DuckDB, and the values of its parameters.

    `tables` are the names of what it may read, by the same in small letters.
    """
    try:
        _check_begins_select(excerpt)
        tree = _only_select(excerpt, _parsed(excerpt))
        _check_tables(excerpt, tree, tables)
        _check_functions(excerpt, tree)
        parameters = _parameters(excerpt, tree)
        tree = name_columns(tree, _AnsiSpark)
        names = written_names(tree)
        for rewrite in _REWRITES:
            tree = tree.transform(rewrite, copy=False)
        text = tree.sql(dialect="duckdb", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except RecursionError:
        raise QuerySyntaxError("the text is nested too deeply", hint="Give subqueries names: WITH a AS (…)") from None
    except KleeneError:
        raise
    except SqlglotError as error:
        raise UnsupportedError(f"in process, this text cannot be run: {_first_line(error)}", hint=_ON_SPARK) from None
    except Exception:  # sqlglot stumbles in many ways over calls that lack arguments
        raise QuerySyntaxError("the text cannot be translated", hint=_ARGUMENTS) from None
    return Translated(text, parameters, names)


def _parsed(excerpt: Excerpt) -> list[Node]:
    try:
        parsed = sqlglot.parse(excerpt.text, read=_AnsiSpark)
    except ParseError as error:
        raise _not_sql(excerpt, error) from None
    except SqlglotError as error:
        raise QuerySyntaxError(f"the text is not SQL: {_first_line(error)}") from None
    except RecursionError:
        raise
    except Exception:
        raise QuerySyntaxError("the text is not SQL", hint=_ARGUMENTS) from None
    return [statement for statement in parsed if statement is not None]


def _not_sql(excerpt: Excerpt, error: ParseError) -> QuerySyntaxError:
    details = error.errors[0] if error.errors else {}
    words = printable(re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", str(details.get("description") or error)), 200)
    line, column = details.get("line"), details.get("col")
    location = None
    if isinstance(line, int) and isinstance(column, int):
        before = excerpt.text.split("\n")[: line - 1]
        end = sum(len(one) + 1 for one in before) + column
        location = excerpt.locate(max(0, end - len(details.get("highlight") or " ")), end)
    return QuerySyntaxError(f"the text is not SQL here: {words.rstrip('.')}", location)


def _first_line(error: Exception) -> str:
    return printable(next(iter(str(error).strip().splitlines()), type(error).__name__), 200)


def _only_select(excerpt: Excerpt, statements: list[Node]) -> Node:
    """The one statement, if it only reads."""
    if len(statements) > 1:
        raise UnsupportedError(
            f"the text has {len(statements)} statements, but in process it may have only one SELECT",
            hint="Run each in a call of its own.",
        )
    others = (
        exp.Insert,
        exp.Update,
        exp.Delete,
        exp.Merge,
        exp.Create,
        exp.Drop,
        exp.Command,
        exp.Into,
        exp.Use,
        exp.Set,
    )
    variables = (exp.Parameter, exp.SessionParameter)
    first = statements[0] if statements else None
    if not isinstance(first, exp.Query) or first.find(*others, *variables) is not None:
        raise _no_select(excerpt)
    if any(isinstance(alias.this, exp.Star) for alias in first.find_all(exp.Alias)):
        raise QuerySyntaxError("'*' cannot have a name", hint="Write * alone, or name single columns.")
    return first


def _check_begins_select(excerpt: Excerpt) -> None:
    words = [token.word for token in tokens_of(excerpt.text) if token.text != "("]
    if not words or words[0] not in ("SELECT", "WITH", "FROM", "VALUES"):
        raise _no_select(excerpt)


def _no_select(excerpt: Excerpt) -> UnsupportedError:
    begun = next(iter(tokens_of(excerpt.text)), None)
    return UnsupportedError(
        "in process, a text is one SELECT, which may begin with WITH",
        None if begun is None else excerpt.locate(begun.start, begun.end),
        "It reads the tables that you give, and changes nothing. " + _ON_SPARK,
    )


def _check_tables(excerpt: Excerpt, tree: Node, tables: Mapping[str, str]) -> None:
    common = {common.alias_or_name.lower() for common in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            name = _spark_name(table.this)
            if name not in TABLE_FUNCTIONS:
                raise _no_function(excerpt, name)
            continue
        name = ".".join(part.name for part in table.parts)
        if table.args.get("db") is None and name.lower() in {*common, *tables, *excerpt.frames}:
            continue
        raise AnalysisError(
            f"there is no table '{printable(name)}'",
            _place(excerpt, table.this) or _place_of(excerpt, table.name),
            f"Tables: {listed(tables.values())}.{did_you_mean(name, tables.values())}",
        )


def _place(excerpt: Excerpt, node: Any) -> Location | None:
    meta = node.meta if isinstance(node, exp.Expression) else {}
    if "start" not in meta:
        return None
    return excerpt.locate(meta["start"], meta["end"] + 1)


def _place_of(excerpt: Excerpt, name: str) -> Location | None:
    """Where the name stands first."""
    for token in tokens_of(excerpt.text):
        if token.name == name.lower() and not token.text.startswith("'"):
            return excerpt.locate(token.start, token.end)
    return None


def _check_functions(excerpt: Excerpt, tree: Node) -> None:
    for node in tree.find_all(exp.Func):
        if isinstance(node.parent, exp.Table):
            continue
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in ANONYMOUS:
                raise _no_function(excerpt, node.name.lower())
        elif type(node).__name__ not in CLASSES or _differs(node):
            raise _no_function(excerpt, _spark_name(node))
    for lateral in tree.find_all(exp.Lateral):
        if lateral.args.get("outer"):
            raise UnsupportedError("in process, LATERAL VIEW OUTER is not known", None, _ON_SPARK)


def _differs(node: Node) -> bool:
    """Whether the call is one of those that DuckDB answers in another way."""
    match node:
        case exp.Exists():
            return node.expression is not None and node.args.get("expression") is not None
        case exp.Extract():
            return node.name.upper() not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")
        case exp.RegexpReplace():
            new = node.args.get("replacement")
            return not (isinstance(new, exp.Literal) and not set(new.name) & {"$", "\\"})
        case exp.TimestampTrunc() | exp.DateTrunc():
            return node.text("unit").upper() not in (
                *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
            )
    return False


def _spark_name(node: Node) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    written = node.sql(dialect=_AnsiSpark, normalize_functions="lower", comments=False)
    return written.partition("(")[0].strip().lower()[:60] if "(" in written else type(node).__name__.lower()


def _no_function(excerpt: Excerpt, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"in process, the function '{printable(name)}' is not known", _place_of(excerpt, name), _ON_SPARK
    )


def _parameters(excerpt: Excerpt, tree: Node) -> list[Any] | dict[str, Any] | None:
    """The values of the parameters that the text has, which get names of ours."""
    marks = list(tree.find_all(exp.Placeholder, bfs=False))
    named = [node for node in marks if node.args.get("this")]
    if not marks:
        return None
    if len(named) < len(marks):
        values = excerpt.args if isinstance(excerpt.args, list) else []
        if named or len(values) != len(marks):
            raise AnalysisError(
                f"the text has {len(marks)} parameters, but args has {len(values)} values for them",
                hint="Give a list with a value for each '?': args=[…]; or a dict for ':name': args={…}.",
            )
        return values
    given = excerpt.args if isinstance(excerpt.args, dict) else {}
    found = {}
    for number, node in enumerate(named):
        if node.name not in given:
            raise AnalysisError(
                f"the parameter ':{printable(node.name)}' has no value",
                _place_of(excerpt, node.name),
                f"args has: {listed(map(str, given))}.{did_you_mean(node.name, map(str, given))}",
            )
        found[f"p{number}"] = given[node.name]
        node.set("this", f"p{number}")
    return found


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


_WHOLE = {exp.DataType.Type[name] for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")}
_TEXT = {exp.DataType.Type[name] for name in ("TEXT", "VARCHAR", "CHAR")}


def _cast(node: Node) -> Node:
    if not isinstance(node, (exp.Cast, exp.TryCast)) or (isinstance(node.this, exp.Literal) and node.this.is_int):
        return node
    kind = node.to.this
    if kind in _WHOLE:
        node.set("this", _call("kleene_try_whole" if isinstance(node, exp.TryCast) else "kleene_whole", node.this))
    elif kind in _TEXT:
        return _call("kleene_text", node.this)
    elif kind == exp.DataType.Type.TIMESTAMP:  # an instant, for Spark
        node.set("to", exp.DataType.build("timestamptz"))
    return node


def _divide(node: Node) -> Node:
    if isinstance(node, (exp.Div, exp.IntDiv, exp.Mod)):
        divisor = node.expression
        is_known = isinstance(divisor, exp.Literal) and divisor.is_number and float(divisor.name) != 0
        if not is_known:
            node.set("expression", _call("kleene_divisor", divisor))
    return node


def _like(node: Node) -> Node:
    if isinstance(node, (exp.Like, exp.ILike)) and not isinstance(node.parent, exp.Escape):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    return node


def _function(node: Node) -> Node:
    match node:
        case exp.Substring() if not _is_positive(node.args.get("start")):
            node.set("start", _call("kleene_start", node.args["start"]))
        case exp.IsNan():
            return exp.Coalesce(this=node.copy(), expressions=[exp.false()])
        case exp.TsOrDsAdd():
            return _call("kleene_add_days", node.this, exp.paren(node.expression))
        case exp.AddMonths():
            return _call("kleene_add_months", node.this, exp.paren(node.expression))
        case exp.DayOfWeek():
            return _call("kleene_dayofweek", node.this)
        case exp.TimestampDiff():
            return _call("date_sub", exp.Literal.string(node.text("unit").lower()), node.expression, node.this)
        case exp.Quantile():
            return _call("quantile_cont", node.this, node.args["quantile"])
        case exp.ArgMax():
            return _call("arg_max_null", node.this, node.expression)
        case exp.ArgMin():
            return _call("arg_min_null", node.this, node.expression)
        case exp.ArrayToString() if node.args.get("null") is None:
            return _call("kleene_join", node.this, node.expression)
        case exp.ArrayContains():
            return _call("kleene_contains", node.this, node.expression)
        case exp.Anonymous():
            return _ANONYMOUS.get(node.name.lower(), lambda node: node)(node)
        case exp.Hint():
            return None  # sqlglot takes the node away
    return node


def _is_positive(node: Any) -> bool:
    return isinstance(node, exp.Literal) and node.is_number and float(node.name) > 0


_ANONYMOUS: dict[str, Callable[[Any], Node]] = {
    "isnull": lambda node: exp.Is(this=node.expressions[0], expression=exp.Null()),
    "isnotnull": lambda node: exp.Not(this=exp.Is(this=node.expressions[0], expression=exp.Null())),
    "mean": lambda node: exp.Avg(this=node.expressions[0]),
    "every": lambda node: exp.LogicalAnd(this=node.expressions[0]),
    "some": lambda node: exp.LogicalOr(this=node.expressions[0]),
    "pmod": lambda node: _call("kleene_pmod", *node.expressions),
    "weekday": lambda node: _call("kleene_weekday", *node.expressions),
}


def _lists(node: Node) -> Node:
    """Lists of no rows are empty for Spark, and NULL for DuckDB."""
    if isinstance(node, (exp.Window, exp.Filter, exp.ArrayAgg, exp.ArrayUniqueAgg)):
        inner: Any = node
        while isinstance(inner, (exp.Window, exp.Filter)):
            inner = inner.this
        is_inner = isinstance(node.parent, (exp.Window, exp.Filter)) and node.arg_key == "this"
        if isinstance(inner, (exp.ArrayAgg, exp.ArrayUniqueAgg)) and not is_inner:
            return exp.Coalesce(this=node.copy(), expressions=[exp.Array()])
    return node


def _range(node: Node) -> Node:
    """The column of Spark's range is called id."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        name = _spark_name(node.this)
        alias = node.args.get("alias")
        if not (alias and alias.columns):
            label = alias.this if alias and alias.this else exp.to_identifier(name)
            column = {"range": "id"}.get(name, "col")
            node.set("alias", exp.TableAlias(this=label, columns=[exp.to_identifier(column)]))
    return node


_REWRITES = (_cast, _divide, _like, _lists, _function, _range)
