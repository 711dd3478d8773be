"""Step patterns and streams in shorthand, and the calls of the builder that say the same.

The shorthand is that of STEPS.md section 8:

    a > b    next              b+      one_or_more          greedy  consecutive  combinations
    a >> b   followed_by       b{2}    times(2)             until(u)  until(uv)
    a >>> b  followed_by_any   b{1,2}  times(1, 2)          since_previous(3)
    a >! n   not_next          b{2,}   times_or_more(2)     p=ab  a step p of the types a and b
    a >>! n  not_followed_by   b?      optional             [price > 3]  where
    ( … )    a group           within(5), at the end: the window of the whole pattern

and these additions:

    p=*                  a step that accepts every type
    or[price > 3]        or_where
    until[price > 3]     until with a condition other than a type
    gap(3)               gap=3 of the repetition
    within(5 events)     a window in events; within may stand several times
    skip_to_next  skip_past_last_event  skip_to_first(b)  skip_to_last(b)  no_skip
    missing_error        missing="error" of after_match
    partition(key)       partition_by("key")

The last four stand at the end, beside `within`. The modifiers of a step may stand in any order.

A stream is a list of events: letter and number, then `=price`, `@time` and `/key`, each of them optional. Without
`@` the time is that of the event before plus one (the first: 0), `/` alone is a NULL key, and an event without `=`
has a NULL price.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from steps_model import ANY, MODES, RELAXED, STRICT, Condition, Event, Group, Negation, Part, Pattern, Quantifier, Step

_METHOD = {STRICT: "next", RELAXED: "followed_by", ANY: "followed_by_any"}
_SIGN = {STRICT: ">", RELAXED: ">>", ANY: ">>>"}

# ---------------------------------------------------------------- reading shorthand

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>>>!|>>>|>!|>>|>)|(?P<open>\()|(?P<close>\))|(?P<count>\{\d+(?:,\d*)?\})|(?P<mark>[+?])"
    r"|(?P<text>(?:or|until)?\[[^\]]*\])|(?P<call>[a-z_]+\([^()]*\))|(?P<word>[A-Za-z]\w*(?:=(?:\w+|\*))?))"
)
_WORDS = {"greedy", "consecutive", "combinations", "missing_error", *MODES}


@dataclass
class _Token:
    kind: str
    text: str


@dataclass
class _Draft:
    """The whole pattern's own settings, gathered while its parts are read."""

    settings: dict[str, Any] = field(default_factory=dict)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"cannot read {text[place:]!r} in {text!r}")
        kind = found.lastgroup
        assert kind is not None
        tokens.append(_Token(kind, found.group(kind)))
        place = found.end()
    return tokens


def parse(text: str) -> Pattern:
    """The pattern that a shorthand says."""
    tokens = _tokens(text)
    draft = _Draft()
    parts = _read_parts(tokens, draft)
    if tokens:
        raise ValueError(f"{tokens[0].text!r} is left over in {text!r}")
    return Pattern(parts, **draft.settings)


def _read_parts(tokens: list[_Token], draft: _Draft) -> tuple[Part, ...]:
    parts = [_read_part(tokens, STRICT, False, draft)]
    while tokens and tokens[0].kind == "sign":
        sign = tokens.pop(0).text
        contiguity = {1: STRICT, 2: RELAXED, 3: ANY}[sign.count(">")]
        parts.append(_read_part(tokens, contiguity, sign.endswith("!"), draft))
    return tuple(parts)


def _read_part(tokens: list[_Token], contiguity: str, negative: bool, draft: _Draft) -> Part:
    first = tokens.pop(0)
    part: Part
    if first.kind == "open":
        inner = _read_parts(tokens, draft)
        if tokens.pop(0).kind != "close":
            raise ValueError("a group is not closed")
        part = Group(inner, contiguity)
    elif first.kind == "word" and first.text not in _WORDS:
        name, _, letters = first.text.partition("=")
        condition = Condition(None if letters == "*" else letters or name)
        part = Negation(name, condition, contiguity) if negative else Step(name, condition, contiguity)
    else:
        raise ValueError(f"a step begins with a name, not with {first.text!r}")
    while tokens and tokens[0].kind not in ("sign", "close"):
        part = _modified(part, tokens.pop(0), draft)
    return part


def _modified(part: Part, token: _Token, draft: _Draft) -> Part:
    head, _, rest = token.text.partition("(")
    argument = rest[:-1]
    if head in MODES or head in ("within", "partition", "missing_error"):
        _whole(draft, head, argument)
        return part
    if token.kind == "text" and not token.text.startswith("until"):
        if isinstance(part, Group):
            raise ValueError("a group has no condition")
        return replace(part, condition=_joined(part.condition, token.text))
    if head == "since_previous" and not isinstance(part, Group):
        return replace(part, since=int(argument))
    if isinstance(part, Negation):
        raise ValueError(f"{token.text!r} does not belong to a negation")
    return replace(part, quantifier=_quantified(part.quantifier, token, head, argument))


def _whole(draft: _Draft, head: str, argument: str) -> None:
    settings = draft.settings
    if head == "within":
        number, _, unit = argument.partition(" ")
        key = "within_events" if unit else "within"
        settings[key] = min(int(number), settings.get(key, int(number)))
    elif head == "partition":
        settings["partition"] = tuple(re.split(r",\s*", argument))
    elif head == "missing_error":
        settings["missing_error"] = True
    else:
        settings["mode"], settings["target"] = head, argument or None


def _joined(condition: Condition, text: str) -> Condition:
    joiner = "OR" if text.startswith("or") else "AND"
    return replace(condition, texts=(*condition.texts, (joiner, text[text.index("[") + 1 : -1])))


def _quantified(quantifier: Quantifier, token: _Token, head: str, argument: str) -> Quantifier:
    if token.kind == "count":
        low, comma, high = token.text[1:-1].partition(",")
        return _counted(quantifier, int(low), int(high) if high else None if comma else int(low))
    if token.text.startswith("until"):
        until = _joined(Condition(), token.text) if token.kind == "text" else Condition(argument)
        return replace(quantifier, until=until)
    if head == "gap":
        return replace(quantifier, gap=int(argument))
    changes: dict[str, dict[str, Any]] = {
        "+": {"low": 1, "high": None},
        "?": {"optional": True},
        "greedy": {"greedy": True},
        "consecutive": {"inner": STRICT},
        "combinations": {"inner": ANY},
    }
    return replace(quantifier, **changes[token.text])


def _counted(quantifier: Quantifier, low: int, high: int | None) -> Quantifier:
    if low == 0:
        return replace(quantifier, low=1, high=high, optional=True)
    return replace(quantifier, low=low, high=high)


def stream(text: str) -> list[Event]:
    """The events that a stream in shorthand says."""
    events: list[Event] = []
    for position, word in enumerate(text.split()):
        found = re.fullmatch(r"([a-z])(\d+)(?:=(-?[\d.]+))?(?:@(-?\d+))?(/\w*)?", word)
        if found is None:
            raise ValueError(f"cannot read the event {word!r}")
        letter, number, price, time, key = found.groups()
        moment = int(time) if time is not None else events[-1].time + 1 if events else 0
        worth = float(price) if price is not None else None
        events.append(Event(letter + number, letter, moment, worth, (key or "/")[1:] or None, position))
    return events


# ---------------------------------------------------------------- writing shorthand


def render(pattern: Pattern) -> str:
    """The pattern in shorthand; `parse` reads it back."""
    words = [_render_parts(pattern.parts)]
    if pattern.within is not None:
        words.append(f"within({pattern.within})")
    if pattern.within_events is not None:
        words.append(f"within({pattern.within_events} events)")
    if pattern.mode != "no_skip":
        words.append(pattern.mode + (f"({pattern.target})" if pattern.target else ""))
    if pattern.missing_error:
        words.append("missing_error")
    if pattern.partition:
        words.append(f"partition({', '.join(pattern.partition)})")
    return " ".join(words)


def render_stream(events: list[Event]) -> str:
    words = []
    for event in events:
        price = "" if event.price is None else f"={event.price:g}"
        words.append(f"{event.name}{price}@{event.time}" + ("" if event.key is None else f"/{event.key}"))
    return " ".join(words)


def _render_parts(parts: tuple[Part, ...]) -> str:
    words: list[str] = []
    for index, part in enumerate(parts):
        if index:
            words.append(_SIGN[part.contiguity] + ("!" if isinstance(part, Negation) else ""))
        words.append(_render_part(part))
    return " ".join(words)


def _render_part(part: Part) -> str:
    if isinstance(part, Group):
        return f"({_render_parts(part.parts)})" + _render_quantifier(part.quantifier)
    letters = part.condition.letters
    text = (
        part.name
        + ("" if letters == part.name else "=*" if letters is None else f"={letters}")
        + _render_texts(part.condition)
    )
    if isinstance(part, Step):
        text += _render_quantifier(part.quantifier)
    return text + (f" since_previous({part.since})" if part.since is not None else "")


def _render_texts(condition: Condition) -> str:
    return "".join(("[" if joiner == "AND" else " or[") + text + "]" for joiner, text in condition.texts)


def _render_quantifier(quantifier: Quantifier) -> str:
    text = ""
    if quantifier.repeated:
        high = "" if quantifier.high is None else str(quantifier.high)
        text = f"{{{quantifier.low},{high}}}" if quantifier.low != quantifier.high else f"{{{quantifier.low}}}"
        text = "+" if text == "{1,}" else text
    text += {RELAXED: "", STRICT: " consecutive", ANY: " combinations"}[quantifier.inner]
    text += " greedy" if quantifier.greedy else ""
    if quantifier.until is not None:
        letters = quantifier.until.letters
        text += f" until({letters})" if letters is not None else f" until{_render_texts(quantifier.until)}"
    text += f" gap({quantifier.gap})" if quantifier.gap is not None else ""
    return text + ("?" if quantifier.optional else "")


# ---------------------------------------------------------------- calls of the builder


@dataclass(frozen=True)
class Call:
    """One call of the builder. A tuple of calls among the arguments is a pattern used as a group."""

    method: str
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()


Calls = tuple[Call, ...]


def calls(pattern: Pattern) -> Calls:
    """The calls that build the pattern, `begin` first."""
    made = list(_part_calls(pattern.parts))
    if pattern.within is not None:
        made.append(Call("within", (pattern.within,)))
    if pattern.within_events is not None:
        made.append(Call("within", (f"{pattern.within_events} events",)))
    if pattern.mode != "no_skip" or pattern.missing_error:
        keywords = (("missing", "error"),) if pattern.missing_error else ()
        made.append(Call("after_match", (pattern.mode, *([pattern.target] if pattern.target else [])), keywords))
    if pattern.partition:
        made.append(Call("partition_by", pattern.partition))
    return tuple(made)


def _part_calls(parts: tuple[Part, ...]) -> Iterator[Call]:
    for index, part in enumerate(parts):
        method = "begin" if index == 0 else _METHOD[part.contiguity]
        if isinstance(part, Group):
            yield Call(method, (tuple(_part_calls(part.parts)),))
            yield from _quantifier_calls(part.quantifier)
            continue
        yield Call(
            "not_" + method if isinstance(part, Negation) else method, (part.name,), _types(part.condition.letters)
        )
        for number, (joiner, text) in enumerate(part.condition.texts):
            yield Call("or_where" if joiner == "OR" and number else "where", (text,))
        if isinstance(part, Step):
            yield from _quantifier_calls(part.quantifier)
        if part.since is not None:
            yield Call("within", (part.since,), (("since", "previous"),))


def _types(letters: str | None) -> tuple[tuple[str, Any], ...]:
    if letters is None:
        return ()
    return (("type", letters if len(letters) == 1 else tuple(letters)),)


def _quantifier_calls(quantifier: Quantifier) -> Iterator[Call]:
    gap = () if quantifier.gap is None else (("gap", quantifier.gap),)
    low, high = quantifier.low, quantifier.high
    if high is None:
        yield Call("one_or_more", (), gap) if low == 1 else Call("times_or_more", (low,), gap)
    elif quantifier.repeated:
        yield Call("times", (low,) if low == high else (low, high), gap)
    if quantifier.inner != RELAXED:
        yield Call("consecutive" if quantifier.inner == STRICT else "allow_combinations")
    if quantifier.greedy:
        yield Call("greedy")
    if quantifier.until is not None:
        yield Call("until", (until_text(quantifier.until),))
    if quantifier.optional:
        yield Call("optional")


def until_text(until: Condition) -> str:
    """An until condition as an expression."""
    if until.letters is None:
        return until.texts[0][1]
    return " OR ".join(f"type = '{letter}'" for letter in until.letters)


def builder_text(made: Calls) -> str:
    """The calls as Python source."""
    words = []
    for call in made:
        arguments = [builder_text(each) if _is_calls(each) else repr(each) for each in call.arguments]
        arguments += [f"{key}={value!r}" for key, value in call.keywords]
        words.append(f"{call.method}({', '.join(arguments)})")
    return "kleene." + ".".join(words)


def to_builder(pattern: Pattern, kleene_module: Any) -> Any:
    """The pattern, built by the calls of the module's builder."""
    return _apply(calls(pattern), kleene_module)


def _apply(made: Calls, kleene_module: Any) -> Any:
    built = kleene_module
    for call in made:
        arguments = [_apply(each, kleene_module) if _is_calls(each) else each for each in call.arguments]
        built = getattr(built, call.method)(*arguments, **dict(call.keywords))
    return built


def _is_calls(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Call)
