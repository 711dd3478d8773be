"""Every query printed in the two SASE papers parses as printed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from kleene.ir.text import query_text
from kleene.lang.parameters import bind
from paper_queries import HEALTHCARE, MISPLACED_INVENTORY, PRINTED, Q1, Q2, Q3, QUERY_3


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
def test_printed_query_parses_and_its_canonical_text_means_the_same(text: str) -> None:
    query = kleene.sase(text)
    assert kleene.sase(query_text(query.definition)) == query
    sizes = {"T": 6, "W": "500 events"}
    parameter = query.definition.window_parameter
    [bound] = bind((query.definition,), {parameter.name: sizes[parameter.name]} if parameter else None)
    assert kleene.sase(query_text(bound)).definition == bound


def test_window_parameter_needs_a_value() -> None:
    with pytest.raises(kleene.AnalysisError, match="'T' is a parameter without a value") as caught:
        kleene.sase(Q3).explain()
    assert (caught.value.line, caught.value.column) == (3, 14)


def test_window_parameter_of_nonsense_is_refused() -> None:
    with pytest.raises(kleene.AnalysisError, match="which is not a window"):
        kleene.sase(Q3).explain(params={"T": "soon"})


CANONICAL = {
    "misplaced inventory": (
        MISPLACED_INVENTORY,
        """PATTERN SEQ(SHELF-READING x, SHELF-READING y, !(ANY(COUNTER-READING, SHELF-READING) z))
WHERE [id]
  AND x.shelf_id != y.shelf_id
  AND x.shelf_id = z.shelf_id
WITHIN 1 hour""",
    ),
    "healthcare": (
        HEALTHCARE,
        """PATTERN SEQ(MEDICINETAKEN x, MEDICINETAKEN y)
WHERE [name = 'John']
  AND [medicine = 'Antibiotics']
  AND x.amount + y.amount > 1000
WITHIN 4 hours""",
    ),
    "query 3": (
        QUERY_3,
        """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) { [symbol]
  AND a[1].volume > 1000
  AND a[i].price > avg(a[..i-1].price)
  AND b.volume < 0.8 * a[a.LEN].volume }
WITHIN 1 hour""",
    ),
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.values(), ids=CANONICAL)
def test_canonical_text(text: str, canonical: str) -> None:
    assert query_text(kleene.sase(text).definition) == canonical


def test_signs_of_the_paper_and_ascii_make_equal_queries() -> None:
    signs = kleene.sase("EVENT SEQ(A a, B b) WHERE ¬(a.x ≠ b.x ∨ a.y ≤ 3) ∧ b.z ≥ 2")
    ascii_only = kleene.sase("event seq(A a, B b) where not (a.x <> b.x or a.y <= 3) and b.z >= 2")
    assert signs == ascii_only


READINGS = pa.table(
    {
        "type": ["SHELF-READING", "SHELF-READING", "COUNTER-READING", "EXIT-READING", "EXIT-READING"],
        "t": [1, 2, 3, 4, 5],
        "id": [7, 8, 8, 7, 8],
        "category": ["food", "toys", None, None, None],
        "manufacturer_id": ["1", "1", None, None, None],
    }
)


def test_sase_2006_output_of_q1_is_the_attributes_of_its_event() -> None:
    found = kleene.sase(f"{Q1} RETURN *").match(READINGS, order_by="t")
    assert found.to_pylist() == READINGS.slice(0, 1).to_pylist()


def test_sase_2006_output_of_q2_is_the_attributes_of_its_events_one_after_the_other() -> None:
    query = kleene.sase(f"{Q2.replace('12 hours', '100')} RETURN *")
    found = query.match(READINGS, order_by="t")
    names = READINGS.column_names
    assert found.column_names == [*(f"x_{name}" for name in names), *(f"z_{name}" for name in names)]
    assert [(row["x_id"], row["z_t"]) for row in found.to_pylist()] == [(7, 4)]


def test_sase_plus_2008_output_of_query_3_is_the_content_of_its_variables() -> None:
    stock = pa.table(
        {
            "type": ["Stock"] * 4,
            "t": range(4),
            "symbol": ["x"] * 4,
            "price": [1, 2, 3, 4],
            "volume": [2000, 900, 800, 9],
        }
    )
    query = kleene.sase(f"{QUERY_3.replace('1 hour', '100')} RETURN a, b")
    found = query.match(stock, order_by="t").to_pylist()
    assert [([event["t"] for event in row["a"]], row["b"]["t"]) for row in found] == [([0], 1), ([0, 1, 2], 3)]
