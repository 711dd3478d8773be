"""What in a query text would run code that is not Spark's own: refused unless the caller allows it.

Spark's `reflect` calls any static method of the JVM, `TRANSFORM … USING` starts a program, and some statements load
classes or run a text that stands in a string, where nobody can look for the others. Functions that the owner of the
session has registered are not meant: to register them was the owner's choice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from kleene.errors import UnsupportedError, printable
from kleene.ir import expr as ir
from kleene.ir.query import QueryDefinition
from kleene.source import SourceText, Span
from kleene.sqltext.tokens import Token

JVM_CALLS = frozenset({"reflect", "java_method", "try_reflect"})
"""Functions of Spark that call a method of the JVM by its name."""
_VARIABLE = re.compile(r"\$\{\S+?\}")
_MARKERS = (":", "?")


def check_definition(definition: QueryDefinition) -> None:
    """An error if a clause calls code of the JVM."""
    parts = [
        *definition.partition_by,
        *(key.expression for key in definition.order_by),
        *(item.condition for item in definition.definitions),
        *(measure.expression for measure in definition.measures or ()),
    ]
    for part in parts:
        for node in ir.walk(part):
            if isinstance(node, ir.Function) and node.name in JVM_CALLS:
                raise UnsupportedError(
                    f"{node.name} runs code of the JVM, which a clause may not do",
                    definition.source.locate(node.name_span),
                    "Compute the column before matching, or trust the text: kleene.sql(…, allow_jvm_calls=True).",
                )


def check_tokens(text: str, tokens: Sequence[Token], original: SourceText, substitutes: bool) -> None:
    """An error if the text, or what Spark would make of it, runs code that is not Spark's own.

    `substitutes` says whether the session puts in values for ${name} before it reads a text.
    """
    for number, token in enumerate(tokens):
        offence = _offence(tokens, number)
        if offence is not None:
            raise _refused(offence, Span(token.start, token.end), original)
    variable = _VARIABLE.search(text) if substitutes else None
    if variable is not None:
        offence = f"Spark replaces {printable(variable[0])} by text that nobody has looked at"
        raise _refused(offence, Span(*variable.span()), original)


def _offence(tokens: Sequence[Token], number: int) -> str | None:
    """What is wrong with the token and those around it; None if nothing is."""
    token, then = tokens[number], tokens[number + 1] if number + 1 < len(tokens) else None
    if token.text.startswith("$") and len(token.text) > 1:
        return "a text in dollar signs may be code"
    if then is None:
        return None
    if token.name in JVM_CALLS and then.text == "(":
        return f"{token.name} runs code of the JVM"
    is_given = then.is_string or then.text in _MARKERS
    match token.word:
        case "IDENTIFIER" if then.text == "(" and _calls_what_it_makes(tokens, number + 1):
            return "a function that is called through IDENTIFIER may run code of the JVM"
        case "EXECUTE" if then.word == "IMMEDIATE":
            return "EXECUTE IMMEDIATE runs a text that nobody has looked at"
        case "USING" if is_given:
            return "TRANSFORM … USING runs a program"
        case "FUNCTION" if number and tokens[number - 1].word in ("CREATE", "REPLACE", "TEMPORARY", "TEMP"):
            return "CREATE FUNCTION may load code" if _names_a_class(tokens[number:]) else None
        case "ADD" if then.word in ("JAR", "JARS"):
            return "ADD JAR loads code"
    return None


def _calls_what_it_makes(tokens: Sequence[Token], opening: int) -> bool:
    """Whether IDENTIFIER( … ) is followed by arguments, and is not plainly another name."""
    depth = tokens[opening].depth
    ends = (n for n in range(opening + 1, len(tokens)) if tokens[n].text == ")" and tokens[n].depth == depth)
    end = next(ends, None)
    if end is None or end + 1 >= len(tokens) or tokens[end + 1].text != "(":
        return False
    inside = tokens[opening + 1 : end]
    is_plain = len(inside) == 1 and re.fullmatch(r"['\"][\w.]*['\"]", inside[0].text) is not None
    return not is_plain or inside[0].text[1:-1].lower().split(".")[-1] in JVM_CALLS


def _names_a_class(tokens: Sequence[Token]) -> bool:
    pairs = itertools.pairwise(tokens)
    return any(
        one.word == "LANGUAGE" or (one.word == "AS" and (then.is_string or then.text in _MARKERS))
        for one, then in pairs
    )


def _refused(offence: str, span: Span, original: SourceText) -> UnsupportedError:
    return UnsupportedError(
        f"{offence}, which is not allowed in a query text",
        original.locate(span),
        "If you trust the text: kleene.sql(…, allow_jvm_calls=True).",
    )
