"""A document -> what is wrong with it, each with the stretch of text that is wrong."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from kleene.api import Query, check, match_recognize
from kleene.editor.documents import SQL, Document
from kleene.errors import KleeneError, KleeneWarning
from kleene.programs import program
from kleene.schema import EventSchema
from kleene.source import Span
from kleene.sqltext.tokens import closing


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, or, where it `is_warning`, probably a slip."""

    span: Span
    message: str
    is_warning: bool = False


def problems_in(document: Document, schema: EventSchema | None = None) -> tuple[Problem, ...]:
    """Errors and warnings; against the columns of the input, too, if they are known.

    >>> [problem] = problems_in(Document("EVENT SEQ(A a, B b) WHERE a.x < c.x", "sase"))
    >>> problem.span, problem.message.splitlines()[0]
    (Span(start=32, end=33), "unknown variable 'c'")
    """
    if not document.text.strip():
        return ()
    return tuple(problem for part in _parts(document) for problem in _problems_of(part, document, schema))


def _parts(document: Document) -> Iterator[str]:
    """The texts that are parsed: the whole, or each MATCH_RECOGNIZE clause of a SQL query, where it stands."""
    tokens = document.tokens
    if document.language != SQL or not tokens or tokens[0].word not in ("SELECT", "WITH"):
        yield document.text
        return
    for number, token in enumerate(tokens[:-1]):
        if token.word == "MATCH_RECOGNIZE" and tokens[number + 1].text == "(":
            end = closing(tokens, number + 1)
            if end is not None:
                yield re.sub(r"[^\n]", " ", document.text[: token.start]) + document.text[token.start : tokens[end].end]


def _problems_of(text: str, document: Document, schema: EventSchema | None) -> Iterator[Problem]:
    is_whole = text == document.text
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", KleeneWarning)
        try:
            queries = (match_recognize(text),) if document.language == SQL else program(text).queries
            told = _notes(queries, schema if is_whole else None)
        except KleeneError as error:
            yield Problem(_span(error, text), "\n".join(filter(None, (error.message, error.hint))))
            return
    texts = dict.fromkeys([*(str(note.message) for note in noted), *told])
    yield from (Problem(_first_word(text), words, is_warning=True) for words in texts)


def _notes(queries: tuple[Query, ...], schema: EventSchema | None) -> tuple[str, ...]:
    """Warnings about queries that read the input itself: other streams have other columns."""
    streams = {query.definition.into_stream for query in queries}
    own = [query for query in queries if not streams & {*query.definition.from_streams}]
    return tuple(note for query in own for note in check(query, schema, ()))


def _span(error: KleeneError, text: str) -> Span:
    if error.location is None:
        return _first_word(text)
    span = error.location.span
    return Span(span.start, max(span.end, span.start + 1))


def _first_word(text: str) -> Span:
    found = re.search(r"\S+", text)
    return Span(*found.span()) if found else Span(0, 0)
