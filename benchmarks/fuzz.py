"""Looks for queries, tables and snapshots that the engines do not stand: run it with `make fuzz`.

Sections, of which `--section` runs one alone:

    agreement   the generated engine against the reference engine on generated queries and tables, in all languages; the
                last of each language are compiled as well
    steps       random patterns in steps against a slow checker written from their description alone
    texts       hostile texts in all languages: refused with an error of Kleene's, or answered
    snapshots   forged snapshots, with right checksums, of every engine, in processes of their own with bounded memory
    bounds      all matching cases, and generated ones, in plain Python that checks every index; then some generated
                ones as machine code that does

It prints a line for each part, and ends with status 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import pyarrow as pa

from agreement import EXAMPLES, disagreement, sase_examples

TESTS = Path(__file__).parent.parent / "tests"
AT_ONCE = 100
SHARE = 0.3
"""How often a case is tried in other ways, too: with other algorithms, in batches, in pieces."""
FORGERIES_OF_A_PROCESS = 10_000
MOST_MEMORY = 8 << 30
SECTIONS = ("texts", "agreement", "steps", "snapshots", "bounds")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", choices=SECTIONS, action="append", help="only this one")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--compiled", type=int, default=150, help="how many of them are compiled as well")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--forgeries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forge-from", type=int, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.forge_from is not None:
        return forge(options.forge_from, options.forgeries)
    failures = 0
    for section in options.section or SECTIONS:
        sections = {"texts": texts, "agreement": agreement, "steps": steps, "snapshots": snapshots, "bounds": bounds}
        failures += sections[section](options)
    return 1 if failures else 0


def agreement(options: argparse.Namespace) -> int:
    failures = 0
    with ProcessPoolExecutor(initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
        for language in ("sase", "row pattern", "regex"):
            for engine, cases in (("generated", options.cases), ("compiled", options.compiled)):
                failures += tried(pool, language, cases // 3 + 1, options.seed, engine)
    return failures


def steps(options: argparse.Namespace) -> int:
    """How many of the engines gave another answer."""
    failures = 0
    for engine in ("reference", "generated"):
        told = ["--count", str(options.cases // 4), "--seed", str(options.seed), "--engine", engine]
        process = subprocess.run(
            [sys.executable, str(TESTS / "steps" / "run_checks.py"), *told], capture_output=True, text=True
        )
        *wrong, last = process.stdout.splitlines() or [f"status {process.returncode}"]
        print("\n".join([f"steps        {engine:<10} {last}", *wrong]), process.stderr[-2000:], flush=True)
        failures += process.returncode != 0
    return failures


# ---- hostile texts


def texts(options: argparse.Namespace) -> int:
    """How many texts raised what is not Kleene's."""
    from hostile_texts import outcome

    began, found, failures = time.monotonic(), Counter[str](), 0
    first = options.seed * 1_000_003
    for number in range(first, first + options.texts):
        try:
            found[outcome(number)] += 1
        except Exception:
            failures += 1
            print(f"text {number}", traceback.format_exc(limit=-6), sep="\n", flush=True)
    told = ", ".join(f"{number:,} {kind}" for kind, number in found.most_common())
    print(f"texts        hostile    {told}, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    return failures


# ---- forged snapshots


def snapshots(options: argparse.Namespace) -> int:
    """How many forgeries ended a process, or raised what is not Kleene's."""
    began, found, failures = time.monotonic(), Counter[str](), 0
    for begin in range(0, options.forgeries, FORGERIES_OF_A_PROCESS):
        count = min(FORGERIES_OF_A_PROCESS, options.forgeries - begin)
        first = options.seed * 1_000_003 + begin
        command = [sys.executable, __file__, "--forge-from", str(first), "--forgeries", str(count)]
        process = subprocess.run(command, capture_output=True, text=True)
        for line in process.stdout.splitlines():
            kind, _, number = line.partition(" ")
            found[kind] += int(number)
        if process.returncode:
            failures += 1
            print(f"from {first}: status {process.returncode}", process.stderr[-3000:], sep="\n", flush=True)
    told = ", ".join(f"{number:,} {kind}" for kind, number in found.most_common())
    print(f"snapshots    forged     {told}, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    return failures


def forge(first: int, count: int) -> int:
    import resource

    from forged_snapshots import forged, outcome, real_snapshots

    real = real_snapshots("compiled")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    found, foreign = Counter[str](), 0
    for number in range(first, first + count):
        name, query, snapshot = real[number % len(real)]
        try:
            found[outcome(query, forged(snapshot, random.Random(number)))] += 1
        except Exception:
            foreign += 1
            print(f"forgery {number} of {name}", traceback.format_exc(limit=-6), sep="\n", file=sys.stderr)
    for kind, number in found.items():
        print(kind, number)
    return 1 if foreign else 0


# ---- bounds


def bounds(_: argparse.Namespace) -> int:
    """How many of the suites met a wrong index, or gave another answer."""
    compiled = TESTS / "engine" / "compiled"
    suites = {
        "plain": [str(compiled / "test_cases_compiled.py"), str(compiled / "test_agreement.py"), "-k", "not machine"],
        "1": [str(compiled / "test_agreement.py"), "-k", "machine_code"],
    }
    return sum(checked(kind, suite) for kind, suite in suites.items())


def checked(kind: str, suite: list[str]) -> int:
    began = time.monotonic()
    environment = os.environ | {"KLEENE_CHECK_BOUNDS": kind}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suite]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=TESTS.parent)
    what = "plain" if kind == "plain" else "compiled"
    print(f"bounds       {what:<10} {process.stdout.splitlines()[-1]}, {time.monotonic() - began:.0f} s", flush=True)
    if process.returncode:
        print(process.stdout[-5000:], process.stderr[-2000:], sep="\n", flush=True)
    return 1 if process.returncode else 0


# ---- agreement


def tried(pool: ProcessPoolExecutor, language: str, count: int, seed: int, engine: str) -> int:
    """How many of the cases the engines disagree about."""
    began, different = time.monotonic(), []
    parts = [(language, begin, min(AT_ONCE, count - begin), seed, engine) for begin in range(0, count, AT_ONCE)]
    for found in pool.map(differences, parts):
        different += found
    seconds = time.monotonic() - began
    print(f"{language:<12} {engine:<10} {count:>7,} cases, {len(different)} different, {seconds:.0f} s", flush=True)
    if different:
        query, table, problem = min(different, key=lambda item: len(str(item[0])) + 20 * item[1].num_rows)
        print(query, *table.to_pylist(), problem, sep="\n", flush=True)
    return len(different)


def differences(part: tuple[str, int, int, int, str]) -> list[tuple[object, pa.Table, str]]:
    language, begin, count, seed, engine = part
    first = seed * 1_000_003 + begin
    if language == "sase":
        cases = sase_examples(count, first)
    else:
        cases = [EXAMPLES[language](random.Random(number)) for number in range(first, first + count)]
    found = []
    for number, (query, table) in enumerate(cases, first):
        problem = problem_with(language, query, table, random.Random(number), engine)
        if problem is not None:
            found.append((query, table, problem))
    return found


def problem_with(language: str, query: object, table: object, chance: random.Random, engine: str) -> str | None:
    try:
        return disagreement(language, query, table, chance, engine, SHARE)
    except Exception:
        return traceback.format_exc(limit=-6)


if __name__ == "__main__":
    sys.exit(main())
