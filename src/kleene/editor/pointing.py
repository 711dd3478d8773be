"""A document and a place in it -> what can be written there, and what stands there means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kleene.editor.documents import SASE, Document, Variable
from kleene.editor.meanings import KEYWORDS, MEANINGS
from kleene.schema import EventSchema
from kleene.source import Span


class Kind(StrEnum):
    ATTRIBUTE = "attribute"
    VARIABLE = "variable"
    KEYWORD = "keyword"


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that can be written, and in a few words what it is."""

    word: str
    kind: Kind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a stretch of the text means, in Markdown."""

    span: Span
    text: str


def completions_at(document: Document, offset: int, schema: EventSchema | None) -> tuple[Completion, ...]:
    """What can be written at the offset: behind a variable's dot its attributes, else names and keywords.

    >>> from kleene.schema_text import parse_schema
    >>> schema = parse_schema("t int, price float")
    >>> [one.word for one in completions_at(Document("EVENT SEQ(A a) WHERE a.", "sase"), 23, schema)]
    ['t', 'price']
    """
    owner = document.owner_before(offset)
    variable = None if owner is None else document.variable(owner)
    if variable is not None:
        return (*_attributes(variable, schema), *_parts_of(variable))
    if owner is not None:
        return ()  # a part of a nested value: its names are not known
    found = [Completion(one.name, Kind.VARIABLE, described(one)) for one in document.variables]
    bare = () if document.language == SASE else _attributes(None, schema)
    words = (Completion(word, Kind.KEYWORD) for word in KEYWORDS[document.language].split())
    return (*found, *bare, *words)


def _attributes(variable: Variable | None, schema: EventSchema | None) -> Iterator[Completion]:
    if schema is None:
        return
    for name in schema:
        if variable is None or not variable.types or any(schema.has(one, name) for one in variable.types):
            yield Completion(name, Kind.ATTRIBUTE, str(schema.type_of(name)))


def _parts_of(variable: Variable) -> Iterator[Completion]:
    if variable.is_kleene:
        yield Completion("LEN", Kind.ATTRIBUTE, "how many events")


def meaning_at(document: Document, offset: int, schema: EventSchema | None) -> Meaning | None:
    """What the word at the offset means: an attribute, a variable, or a word of the language."""
    token = document.token_at(offset)
    if token is None or token.is_string:
        return None
    span, name = Span(token.start, token.end), token.text.strip('`"')
    text = _attribute_meaning(document, token.end, name, schema)
    variable = document.variable(name)
    if text is None and variable is not None:
        text = f"**{variable.name}**: {described(variable)}"
    text = text or MEANINGS.get(token.word)
    return None if text is None else Meaning(span, text)


def _attribute_meaning(document: Document, end: int, name: str, schema: EventSchema | None) -> str | None:
    is_owned = document.owner_before(end) is not None
    if schema is None or name not in schema or not (is_owned or document.language != SASE):
        return MEANINGS["LEN"] if is_owned and name.upper() == "LEN" else None
    return f"**{name}**: {schema.type_of(name)}"


def described(variable: Variable) -> str:
    """A variable in a few words.

    >>> described(Variable("a", ("Shelf",), is_kleene=True)), described(Variable("r", ("Register",), is_negative=True))
    ('one or more events of type Shelf', 'no event of type Register')
    """
    if not variable.types:
        return "variable of the pattern"
    number = "no event" if variable.is_negative else "one or more events" if variable.is_kleene else "an event"
    return f"{number} of type {' or '.join(variable.types)}"
