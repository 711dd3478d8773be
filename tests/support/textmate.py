"""The scopes that a TextMate grammar gives to a text: as editors read it, for the few constructs that ours use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Rule = dict[str, Any]


class Grammar:
    def __init__(self, path: Path) -> None:
        self.told: Rule = json.loads(path.read_text(encoding="utf-8"))
        self.rules = list(self._flat(self.told["patterns"]))

    def _flat(self, rules: list[Rule]) -> Iterator[Rule]:
        for rule in rules:
            if "include" in rule:
                yield from self._flat([self.told["repository"][rule["include"].lstrip("#")]])
            elif "patterns" in rule:
                yield from self._flat(rule["patterns"])
            else:
                yield rule

    def scopes(self, text: str) -> list[tuple[str, str]]:
        """Of each stretch that has one: the text and the scope. The earliest match wins, then the first rule."""
        found: list[tuple[str, str]] = []
        position = 0
        while position < len(text):
            matches = [(self._match(rule, text, position), rule) for rule in self.rules]
            at = [(match.start(), number) for number, (match, _) in enumerate(matches) if match and match.end() > 0]
            if not at:
                break
            match, rule = matches[min(at)[1]]
            assert match is not None
            end = match.end()
            if "end" in rule:
                closed = re.compile(rule["end"]).search(text, end)
                end = closed.end() if closed else len(text)
                found.append((text[match.start() : end], rule["name"]))
            elif "captures" in rule:
                for number, capture in rule["captures"].items():
                    if match[int(number)]:
                        found.append((match[int(number)], capture["name"]))
            else:
                found.append((match[0], rule["name"]))
            position = max(end, position + 1)
        return found

    @staticmethod
    def _match(rule: Rule, text: str, position: int) -> re.Match[str] | None:
        return re.compile(rule.get("match") or rule["begin"], re.MULTILINE).search(text, position)
