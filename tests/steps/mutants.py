"""Wrong readings of the rules, each of which the cases must catch.

    python mutants.py [--all]

Each mutant changes one rule of the slow checker. The table says how many cases tell it from the right one, and names
some of them (--all: all of them).
"""

import sys
from collections.abc import Iterator

import mutants_runs  # noqa: F401, it registers its mutants
from mutants_places import MUTANTS
from steps_brute import Rules
from steps_cases import Case, complaint, load


def catches(rules: Rules, cases: list[Case]) -> Iterator[str]:
    """The names of the cases that tell the mutant from the right rules."""
    return (case.name for case in cases if complaint(case, rules) is not None)


def main() -> int:
    cases = list(load())
    survivors = 0
    for name, rules in MUTANTS.items():
        caught = list(catches(rules, cases))
        survivors += not caught
        shown = caught if "--all" in sys.argv else caught[:3]
        print(f"{len(caught):4}  {name}: {', '.join(shown) if caught else 'NOT CAUGHT'}")
    print(f"{len(MUTANTS)} mutants, {survivors} not caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
