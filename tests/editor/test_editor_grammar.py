from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from textmate import Grammar

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
SASE = Grammar(EXTENSION / "syntaxes" / "sase.tmLanguage.json")
CLAUSE = Grammar(EXTENSION / "syntaxes" / "match-recognize.tmLanguage.json")


def test_a_query_gets_the_scopes_of_its_parts():
    found = SASE.scopes(
        "PATTERN SEQ(Stock+ a[], !(Register r), Exit b) -- c\nWHERE a[i].price > 80%*b.price WITHIN 12 hours"
    )
    assert [(text, scope.split(".")[0] + "." + scope.split(".")[-2]) for text, scope in found] == [
        ("PATTERN", "keyword.clause"),
        ("SEQ", "keyword.clause"),
        ("Stock", "entity.event"),
        ("+", "keyword.kleene"),
        ("a", "variable.other"),
        ("!", "keyword.operator"),
        ("Register", "entity.event"),
        ("r", "variable.other"),
        ("Exit", "entity.event"),
        ("b", "variable.other"),
        ("-- c", "comment.double-dash"),
        ("WHERE", "keyword.clause"),
        ("a", "variable.other"),
        ("price", "variable.member"),
        (">", "keyword.operator"),
        ("80%", "constant.numeric"),
        ("*", "keyword.operator"),
        ("b", "variable.other"),
        ("price", "variable.member"),
        ("WITHIN", "keyword.clause"),
        ("12 hours", "constant.duration"),
    ]


def test_keywords_inside_comments_and_strings_are_none():
    found = SASE.scopes("/* WHERE\nx */ 'SEQ (' `WITHIN` :least")
    assert [scope.split(".")[0] for _, scope in found] == ["comment", "string", "variable", "variable"]


@pytest.mark.parametrize("grammar", ["sase", "expressions"])
def test_every_word_of_the_language_has_a_colour(grammar):
    text = (ROOT / "src" / "kleene" / "lang" / f"{grammar}.lark").read_text(encoding="utf-8")
    words = {
        word
        for line in re.findall(r"^[A-Z_]+\.3: /(.*)/i$", text, re.MULTILINE)
        for word in re.findall(r"[A-Za-z_]{2,}", re.sub(r"\(\?[!=].*?\)|\\.", " ", line))
        if word not in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")
    }
    assert len(words) > 8
    assert {
        word for word in words if not SASE.scopes(f" {word} (")[0][1].startswith(("keyword", "support", "constant"))
    } == set()


def test_a_clause_gets_the_scopes_of_its_parts():
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY k ORDER BY t ONE ROW PER MATCH AFTER MATCH SKIP TO LAST b DEFINE b AS PREV(x)"
    )
    assert [text for text, _ in CLAUSE.scopes(clause)] == [
        *("MATCH_RECOGNIZE", "PARTITION BY", "ORDER BY", "ONE ROW PER MATCH"),
        *("AFTER MATCH SKIP TO LAST", "DEFINE", "PREV"),
    ]


def test_the_extension_names_files_that_are_there():
    told = json.loads((EXTENSION / "package.json").read_text())["contributes"]
    paths = [told["languages"][0]["configuration"], *(grammar["path"] for grammar in told["grammars"])]
    assert all((EXTENSION / path).is_file() for path in paths)
    scopes = [json.loads((EXTENSION / grammar["path"]).read_text())["scopeName"] for grammar in told["grammars"]]
    assert scopes == [grammar["scopeName"] for grammar in told["grammars"]]
