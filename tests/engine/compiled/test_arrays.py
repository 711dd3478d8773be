"""The names of columns and statuses: each has one meaning, and templates use no others."""

import ast
import re
from importlib import resources

import pyarrow as pa
import pytest

import kleene
from kleene.engine.compiled.arrays import CONSTANTS_BY_MODULE, constants_of
from kleene.engine.compiled.loading import assembled

LOOPS = sorted(
    file.name.removesuffix(".py")
    for file in resources.files("kleene.engine.compiled").joinpath("loops").iterdir()
    if file.name.endswith(".py") and file.name != "__init__.py"
)


def names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.isupper()}


def assigned_in(tree):
    return names_in(ast.Module([node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)], []))


def parsed(name):
    return ast.parse(resources.files("kleene.engine.compiled").joinpath("loops", f"{name}.py").read_text())


def test_a_name_stands_in_one_module():
    names = [name for constants in CONSTANTS_BY_MODULE.values() for name in constants]
    assert len(names) == len(set(names))


def test_statuses_differ():
    statuses = CONSTANTS_BY_MODULE["statuses"]
    assert len(set(statuses.values())) == len(statuses)


def test_columns_of_an_array_differ_unless_they_are_of_different_algorithms():
    shared = {("runs", 1), ("runs", 2), ("nodes", 2)}
    for module in ("completions", "edges", "groups", "nodes", "row_groups", "row_matches", "runs", "versions"):
        values = [value for name, value in CONSTANTS_BY_MODULE[module].items() if not name.endswith("_COLUMNS")]
        assert {(module, value) for value in values if values.count(value) > 1} <= shared


@pytest.mark.parametrize("name", LOOPS)
def test_a_template_uses_names_that_are_explained_where_it_says(name):
    tree = parsed(name)
    explained = assigned_in(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and ".arrays." in node.module:
            explained |= set(CONSTANTS_BY_MODULE[node.module.rpartition(".")[2]])
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            explained |= assigned_in(parsed(node.module.rpartition(".")[2]))
        elif isinstance(node, ast.ImportFrom):
            explained |= {alias.name for alias in node.names}
    assert names_in(tree) <= explained


def test_generated_source_has_the_constants_that_it_uses_and_no_others():
    source = assembled("import math", ["A = 1", "", "def f(ri, r):\n    return ri[r, RUN_HEAD]"])
    assert source == "import math\n\nRUN_HEAD = 1\n\nA = 1\n\ndef f(ri, r):\n    return ri[r, RUN_HEAD]"
    assert constants_of("MY_RUN_HEAD, run_head, RUN_HEADS") == ""


def test_code_that_is_shown_says_what_its_numbers_mean():
    events = pa.table({"type": ["A", "B"], "t": [1, 2]})
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { b.t > 0 } RETURN b.t AS t")
    shown = str(query.explain(events, order_by="t", type_column="type", code=True))
    assert re.search(r"^RUN_HEAD = 1$", shown, re.MULTILINE)
    assert "ri[r, RUN_START]" in shown
