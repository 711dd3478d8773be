"""What the parser complains about, in words a person can act on."""

from __future__ import annotations

import re

from lark import Token, UnexpectedCharacters, UnexpectedToken

from kleene.errors import QuerySyntaxError, did_you_mean, listed, printable
from kleene.source import SourceText, Span
from kleene.wording import said

_CLOSING = {"(": ")", "[": "]", "{": "}", "{-": "-}"}
_LANDMARKS = re.compile(
    r"""(?P<whole>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*(?s:.*?)\*/)
       |(?P<unclosed>['"`]|/\*)
       |(?P<open>\{-|[(\[{])
       |(?P<close>-\}|[)\]}])""",
    re.VERBOSE,
)
_WHAT = {"'": "string", '"': "string", "`": "name", "/*": "comment"}

# Words for terminals; a terminal that is not here is called by its own name, as keywords may be.
_WORDS = {
    "NAME": "a name",
    "QUOTED_NAME": "a name",
    "TYPE_NAME": "an event type",
    "NUMBER": "a number",
    "PERCENT": "a number",
    "STRING": "a string",
    "PARAMETER": "a parameter",
    "DURATION": "a duration",
    "COMPARISON": "a comparison",
    "NEGATION": "!",
    "BRACKETS": "[ ]",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "DOT": ".",
    "_DOUBLE_COLON": "::",
    "_ARROW": "->",
    "WILDCARD": ".",
    "FIRST_WORD": "FIRST",
    "LAST_WORD": "LAST",
    "NEXT_WORD": "NEXT",
    "QUANTIFIER": "a quantifier",
    "EXCLUDE": "{-",
    "END_EXCLUDE": "-}",
    "ANCHOR": "^ or $",
    "SEMANTICS": "RUNNING or FINAL",
    "DOTDOT": "[..i-1]",
    "VBAR": "|",
    "SEMICOLON": ";",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "MODULO": "%",
    "CONCAT": "||",
    "EVENTS": "events",
    "UNIT": "a unit of time",
    "STRATEGY": "a strategy",
    "$END": "the end of the text",
}
_VALUES = {"NAME", "QUOTED_NAME", "NUMBER", "STRING", "LPAR"}
_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "MODULO", "CONCAT", "COMPARISON"}
_OTHER_OPERATORS = {"IS", "IN", "BETWEEN", "LIKE", "RLIKE", "NOT", "_DOUBLE_COLON", "DOT", "LSQB"}
_LENGTH = re.compile(r"(\bINTERVAL\s*('[^']*'|[\d.]+)|\b[\d.]+)$", re.IGNORECASE)
_UNITS = "week, day, hour, minute, second, millisecond, microsecond"


def find_unclosed(source: SourceText, text: str, most_nesting: int) -> QuerySyntaxError | None:
    """The first string, comment, name or bracket that never ends, or brackets nested too deep.

    One linear pass before parsing: the parser would point at the end of the text, or work through a megabyte of
    brackets first.
    """
    opened: list[tuple[str, int]] = []
    for found in _LANDMARKS.finditer(text):
        start = found.start()
        match found.lastgroup:
            case "unclosed":
                what = _WHAT[found[0]]
                return _at(
                    source,
                    start,
                    f"the {what} that begins here has no end",
                    f"Close it with {found[0][::-1]} where it ends.",
                )
            case "open":
                opened.append((found[0], start))
                if len(opened) > most_nesting:
                    return _at(source, start, f"brackets are nested more than {most_nesting} levels deep")
            case "close":
                if not opened:
                    return _at(source, start, f"'{found[0]}' closes nothing", "Leave it out, or open it before.")
                bracket, where = opened.pop()
                # In SASE {-x > 1} is a minus; what matters here is the brace.
                if found[0][-1] != _CLOSING[bracket][-1]:
                    line = source.text.count("\n", 0, where) + 1
                    hint = f"The '{bracket}' of line {line} is closed by '{_CLOSING[bracket]}'."
                    return _at(source, start, f"'{found[0]}' does not close '{bracket}'", hint)
    if opened:
        bracket, where = opened[-1]
        return _at(source, where, f"'{bracket}' is never closed", f"Close it with '{_CLOSING[bracket]}'.")
    return None


def _at(source: SourceText, start: int, message: str, hint: str | None = None) -> QuerySyntaxError:
    return QuerySyntaxError(message, source.locate(Span(start, start + 1)), hint)


def complaint(
    error: UnexpectedCharacters | UnexpectedToken,
    source: SourceText,
    text: str,
    clauses: tuple[str, ...],
    expects: str | None,
) -> QuerySyntaxError:
    """An error that names what was found, what could stand there instead, and, for common slips, the fix."""
    if isinstance(error, UnexpectedCharacters):
        start = error.pos_in_stream or 0
        found, end, expected = text[start], start + 1, set(error.allowed or ())
        if word := re.match(r"\w+", text[start:]):
            found, end = word[0], start + len(word[0])
    else:
        token: Token = error.token
        found, expected = str(token), set(error.accepts or error.expected)
        start, end = token.start_pos or 0, token.end_pos or 0
        if token.type == "$END":
            start = end = len(text.rstrip())
            found = ""
    subquery = re.search(r"\(\s*(SELECT|WITH)\s*\Z", text[:start], re.IGNORECASE)
    if subquery is not None and "MEASURES" in clauses:
        return QuerySyntaxError(
            "a subquery cannot stand here",
            source.locate(Span(subquery.start(1), subquery.end(1))),
            "Tables are known only in a SQL text: give the whole query to kleene.sql.",
        )
    message = f"unexpected {_shown(found)}" if found else "the text ends too early"
    if "QUANTIFIER" in expected and re.match(r"\{[\s\d,]*:\w", text[start:]):
        message = "the bounds of a quantifier must be written as numbers, not as parameters"
        return QuerySyntaxError(message, source.locate(Span(start, end)), "Write: A{2,3}")
    hint = expects or _hint(found, text[:start].rstrip(), expected, clauses)
    return QuerySyntaxError(message, source.locate(Span(start, end)), hint)


def _shown(found: str) -> str:
    if found.isprintable():
        return f"'{printable(found)}'"
    return f"character U+{ord(found[0]):04X}"


def _hint(found: str, before: str, expected: set[str], clauses: tuple[str, ...]) -> str:
    if not before and "EVENT" in expected:
        if found.upper() in ("SELECT", "WITH", "PARTITION", "ORDER", "MATCH_RECOGNIZE", "MATCHRECOGNIZE"):
            return "This is SQL: " + said(
                python="pass a whole query to kleene.sql, and a clause alone to kleene.match_recognize.",
                shell="run a whole query with kleene sql, and keep a clause alone in a file whose name ends in .sql.",
            )
        return "A query begins with EVENT or PATTERN: EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 12 hours"
    if found.upper() in ("SELECT", "WITH") and "PATTERN" in expected and not before:
        return (
            "kleene.match_recognize takes what stands inside MATCH_RECOGNIZE ( … ); pass a whole query to kleene.sql."
        )
    if found.upper() == "SELECT":
        return "A subquery cannot stand here."
    if before and any(re.match(rf"{found}\b", name, re.IGNORECASE) for name in clauses if found.isalpha()):
        return f"{found.upper()} cannot stand here. The order of clauses is: {', '.join(clauses)}."
    if meant := did_you_mean(found, [name for name in expected if len(name) > 2 and name.isalpha()]):
        return meant.strip()
    if found == "{":
        return (
            "Braces follow WHERE or a strategy: strict_contiguity, partition_contiguity, skip_till_next_match or "
            "skip_till_any_match, each with its list of variables."
        )
    if re.match(r"(month|quarter|year)s?$", found, re.IGNORECASE) and _LENGTH.search(before):
        return f"A {found.lower().rstrip('s')} has no fixed length: count in days, such as 30 days. Units: {_UNITS}."
    if re.search(r"\bWITHIN\s+[\d.]+$", before, re.IGNORECASE) or "UNIT" in expected:
        return f"A window looks like: 12 hours, 500 events, 100. Units: {_UNITS}."
    if {"COMMA", "RPAR"} <= expected and "COMPARISON" not in expected and found[:1].isalpha():
        return "Components are separated by commas: SEQ(Shelf a, Exit b)"
    if found in ("&", "|", "^"):
        return "Join predicates with AND or OR."
    if found.strip() == "?" and "PARAMETER" in expected:
        return "A parameter is written :name here, and its value is given by that name."
    expectations = _expectations(expected)
    if not expectations:
        return "Nothing can follow here; leave it out."
    return f"Expected {'one of: ' if len(expectations) > 1 else ''}{listed(expectations)}."


def _expectations(expected: set[str]) -> list[str]:
    words: list[str] = []
    if expected >= _VALUES:
        expected = expected & {"NOT"}
        words.append("an expression")
    if expected >= _OPERATORS:
        expected = expected - _OPERATORS - _OTHER_OPERATORS
        words.append("an operator")
    for name in sorted(expected):
        word = _WORDS.get(name, name)
        words.append(word if word[0].isalpha() else f"'{word}'")
    return sorted(set(words), key=lambda word: (not word[0].isalpha(), word))
