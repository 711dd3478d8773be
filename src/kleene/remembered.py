"""Work on a query that calls repeat: remembered for the queries that were asked last."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

from kleene.wording import speaks_to_shell

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

KEPT = 128


class Same:
    """A value that equals itself alone: texts that are equal may stand at different places, and errors point there."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def remembered(make: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`make`, which gives the same result again for the same first argument and equal others, given by position.

    Arguments that cannot be compared, such as a dict of hints, make it anew. Errors are not remembered.
    """

    @lru_cache(KEPT)
    def kept(first: Same, is_shell: bool, *others: Any) -> Any:  # messages differ for the one and the other
        return cast(Any, make)(first.value, *others)

    @wraps(make)
    def ask(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        first, *others = arguments
        try:
            hash(tuple(others))
        except TypeError:
            return make(*arguments, **named)
        return make(*arguments, **named) if named else cast(Result, kept(Same(first), speaks_to_shell(), *others))

    return ask
