"""A SQL text to its tokens, where Spark's own lexer sees them: its dialect is that of all our texts.

What is a string, a comment or a name decides what is looked at and what is not, so every rule here is Spark's: a line
comment ends at a carriage return, too, and goes on behind a backslash at the end of its line; comments nest, but what
begins with /*+ is a hint, which is code. No setting of the session moves the borders of tokens, only their meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""(?P<comment>/\*(?!\+))
       |(?P<blank>\s+|--(?:\\\n|[^\r\n])*)
       |(?P<quoted>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)
       |(?P<dollars>\$(?P<tag>\w*)\$(?:.*?\$(?P=tag)\$|.*))
       |(?P<word>[^\W\d_]+://[\w/\-.?=&#%]+|\w+)
       |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_COMMENT = re.compile(r"/\*(?!\+)|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    depth: int  # how many parentheses are open before it

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        return self.text.upper()

    @property
    def name(self) -> str:
        """The name that the token is, if it is one, in small letters and without its quotes."""
        quote = self.text[0]
        if quote in '`"' and len(self.text) > 1:
            return self.text[1:-1].replace(quote * 2, quote).lower()
        return self.text.lower()

    @property
    def is_string(self) -> bool:
        """Whether it is a string, or may be one: a setting of the session makes names of those in double quotes."""
        return len(self.text) > 1 and self.text[-1] in "'\""


def tokens_of(text: str) -> list[Token]:
    """Words, quoted names and strings, and signs, as Spark sees them, without blanks and comments."""
    found: list[Token] = []
    depth = position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        assert match is not None
        position = match.end()
        if match.lastgroup == "comment":
            position = _end_of_comment(text, position)
        elif match.lastgroup != "blank":
            depth -= match[0] == ")"
            found.append(Token(match[0], match.start(), depth))
            depth += match[0] == "("
    return found


def closing(tokens: list[Token], opening: int) -> int | None:
    """The number of the token that closes the parenthesis."""
    if opening >= len(tokens):
        return None
    depth = tokens[opening].depth
    return next(
        (n for n in range(opening + 1, len(tokens)) if tokens[n].text == ")" and tokens[n].depth == depth), None
    )


def _end_of_comment(text: str, position: int) -> int:
    """Where the comment that has begun ends; in Spark comments nest."""
    open_comments = 1
    for match in _IN_COMMENT.finditer(text, position):
        open_comments += 1 if match[0] == "/*" else -1
        if not open_comments:
            return match.end()
    return len(text)
