"""The commands that README and docs show, run as they stand, in a shell, with a stand-in for `jq`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent.parent
THEFT = "EVENT SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 RETURN a.tag, c.t AS at"
FUNNEL = "EVENT SEQ(View a, Pay b) WHERE [user] WITHIN 1 hour RETURN a.user, b.ts AS paid"
PAID = "EVENT SEQ(View a, Pay b) WHERE [user = :user] WITHIN :size RETURN a.user, b.ts AS paid"
FALLS = """SELECT symbol, top, bottom FROM trades MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price))"""
TRADES = pa.table({"symbol": ["x"] * 4, "t": [1, 2, 3, 4], "price": [10, 8, 7, 9]})
JQ = "python -c 'import sys, json; [print(json.loads(line)[sys.argv[1]]) for line in sys.stdin]' "
EXPECTED = {
    "readings.jsonl": "7",
    "clicks.jsonl": "ann",
    "falls.sql": "x",
    "count(*)": "x",
}
"""What the output of a command has, by something that the command names."""


def commands() -> list[str]:
    """Lines of text blocks that can be run: what is optional or stands for something else makes a line a form."""
    pages = [ROOT / "README.md", ROOT / "docs" / "command_line.md"]
    lines = [line.strip() for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if re.match(r"(cat \S+ \| )?kleene ", line)]
    return [line for line in found if not re.search(r"[\[…]|QUERY|FOLDER", line)]


def test_there_are_commands() -> None:
    assert len(commands()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_command_runs(command: str, tmp_path: Path) -> None:
    readings = ['{"type": "Shelf", "tag": 7, "t": 1}', '{"type": "Exit", "tag": 7, "t": 5}']
    clicks = ['{"type": "View", "user": "ann", "ts": "2024-01-31T10:00:00"}']
    clicks.append('{"type": "Pay", "user": "ann", "ts": "2024-01-31T10:20:00"}')
    files = {"readings.jsonl": "\n".join(readings), "clicks.jsonl": "\n".join(clicks), "theft.sase": THEFT}
    files |= {"funnel.sase": FUNNEL, "paid.sase": PAID, "falls.sql": FALLS, "names.csv": "symbol,name\nx,Xylo\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    pq.write_table(TRADES, tmp_path / "trades.parquet")
    pyarrow.csv.write_csv(TRADES, tmp_path / "trades.csv")
    folder = Path(sys.executable).parent
    shown = re.sub(r"jq \.(\w+)", lambda match: JQ + match[1], command)
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shown}"],
        cwd=tmp_path,
        env={"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    wanted = next(word for place, word in EXPECTED.items() if place in command)
    assert wanted in run.stdout or "-o " in command, run.stdout
