"""Which functions there are."""

from __future__ import annotations

from kleene.ir import expr as ir
from kleene.ir.paths import last_name, path_of

FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "array": (0, None),
    "array_contains": (2, 2),
    "array_join": (2, 3),
    "array_max": (1, 1),
    "array_min": (1, 1),
    "cardinality": (1, 1),
    "ceil": (1, 1),
    "coalesce": (1, None),
    "concat": (1, None),
    "concat_ws": (1, None),
    "contains": (2, 2),
    "date_add": (2, 2),
    "date_diff": (2, 2),
    "date_part": (2, 2),
    "date_sub": (2, 2),
    "date_trunc": (2, 2),
    "datediff": (2, 2),
    "day": (1, 1),
    "dayofmonth": (1, 1),
    "dayofweek": (1, 1),
    "dayofyear": (1, 1),
    "element_at": (2, 2),
    "endswith": (2, 2),
    "exp": (1, 1),
    "floor": (1, 1),
    "greatest": (2, None),
    "hour": (1, 1),
    "if": (3, 3),
    "ifnull": (2, 2),
    "instr": (2, 2),
    "least": (2, None),
    "left": (2, 2),
    "length": (1, 1),
    "ln": (1, 1),
    "locate": (2, 3),
    "lower": (1, 1),
    "lpad": (2, 3),
    "ltrim": (1, 1),
    "map": (0, None),
    "map_from_arrays": (2, 2),
    "map_keys": (1, 1),
    "map_values": (1, 1),
    "minute": (1, 1),
    "mod": (2, 2),
    "month": (1, 1),
    "named_struct": (2, None),
    "nullif": (2, 2),
    "nvl": (2, 2),
    "nvl2": (3, 3),
    "pmod": (2, 2),
    "power": (2, 2),
    "quarter": (1, 1),
    "regexp_like": (2, 2),
    "replace": (2, 3),
    "reverse": (1, 1),
    "right": (2, 2),
    "round": (1, 2),
    "rpad": (2, 3),
    "rtrim": (1, 1),
    "second": (1, 1),
    "sign": (1, 1),
    "size": (1, 1),
    "split_part": (3, 3),
    "sqrt": (1, 1),
    "startswith": (2, 2),
    "struct": (1, None),
    "substring": (2, 3),
    "trim": (1, 1),
    "unix_timestamp": (1, 1),
    "upper": (1, 1),
    "weekofyear": (1, 1),
    "year": (1, 1),
}
"""How many arguments each takes, at least and at most; see docs/language.md."""


def takes(name: str, count: int) -> bool:
    """Whether there is such a function of that many arguments."""
    least, most = FUNCTIONS.get(name, (0, -1))
    return least <= count and (most is None or count <= most)


def field_name(expression: ir.Expr, number: int) -> str:
    """What a field of a struct is called that is made of the expression: like its column, else by its number."""
    match expression:
        case ir.Attribute(name=name):
            path = path_of(name)
            return name if path is None else last_name(path)
        case ir.Field(name=name):
            return name
        case ir.Navigation(argument=argument):
            return field_name(argument, number)
    return f"col{number}"


def is_known(call: ir.Function) -> bool:
    return takes(call.name, len(call.arguments))
