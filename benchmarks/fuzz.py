"""Tries the generated engine against the reference engine on many generated queries and tables, in all languages.

Run it with `make fuzz`. The cases are those of the agreement tests, from other seeds; the last of each language are
compiled as well. It ends with status 1 if anything was different, and prints the smallest query for which it was.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from agreement import EXAMPLES, Example, disagreement, sase_examples

AT_ONCE = 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--compiled", type=int, default=500, help="how many of them are compiled as well")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failures = 0
    for language in ("sase", "row pattern", "regex"):
        count, compiled = options.cases // 3 + 1, options.compiled // 3 + 1
        failures += tried(language, count, options.seed, "generated")
        failures += tried(language, compiled, options.seed, "compiled")
    return 1 if failures else 0


def tried(language: str, count: int, seed: int, engine: str) -> int:
    """How many of the cases the engines disagree about."""
    began, different = time.monotonic(), []
    for number, (query, table) in enumerate(cases(language, count, seed)):
        problem = problem_with(language, query, table, random.Random(seed * 1_000_003 + number), engine)
        if problem is not None:
            different.append((query, table, problem))
    seconds = time.monotonic() - began
    print(f"{language:<12} {engine:<10} {count:>7,} cases, {len(different)} different, {seconds:.0f} s", flush=True)
    if different:
        query, table, problem = min(different, key=lambda item: len(str(item[0])) + 20 * item[1].num_rows)
        print(query, *table.to_pylist(), problem, sep="\n", flush=True)
    return len(different)


def cases(language: str, count: int, seed: int) -> Iterator[Example]:
    if language == "sase":
        for begin in range(0, count, AT_ONCE):
            yield from sase_examples(min(AT_ONCE, count - begin), seed * 1_000_003 + begin)
    else:
        yield from (EXAMPLES[language](random.Random(seed * 1_000_003 + number)) for number in range(count))


def problem_with(language: str, query: object, table: object, chance: random.Random, engine: str) -> str | None:
    try:
        return disagreement(language, query, table, chance, engine)
    except Exception:
        return traceback.format_exc(limit=-6)


if __name__ == "__main__":
    sys.exit(main())
