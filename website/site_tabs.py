"""How code is shown: a tab for each language of a question in the cookbook, and prompts told from output."""

from __future__ import annotations

import re

_TAB = "#### "
_LAST = "#### Answer"
_HEADING = re.compile(r"#{1,4} ")


def with_tabs(markdown: str) -> str:
    """The text, with a tab for each heading of the fourth level; "Answer" ends them and becomes a line.

    >>> print(with_tabs("#### SASE\\n\\nA\\n\\n#### Steps\\n\\nB\\n\\n#### Answer\\n\\nC"))
    === "SASE"
    <BLANKLINE>
        A
    <BLANKLINE>
    === "Steps"
    <BLANKLINE>
        B
    <BLANKLINE>
    **Answer**
    <BLANKLINE>
    C
    """
    lines, is_tab, is_code = [], False, False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            is_code = not is_code
        if is_code or not _HEADING.match(line):
            lines.append(f"    {line}" if is_tab and line else line)
        elif line == _LAST:
            is_tab = False
            lines.append("**Answer**")
        else:
            is_tab = line.startswith(_TAB)
            lines.append(f'=== "{line.removeprefix(_TAB)}"' if is_tab else line)
    return "\n".join(lines)


def with_prompts(markdown: str) -> str:
    """The text, with blocks that show a prompt told apart: output has no colours, and is not copied.

    >>> with_prompts("```python\\n>>> 1\\n```").split("\\n")[0]
    '```pycon'
    """
    markdown = re.sub(r"^<BLANKLINE>$", "", markdown, flags=re.MULTILINE)
    return markdown.replace("```python\n>>> ", "```pycon\n>>> ")
