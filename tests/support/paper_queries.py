"""The queries printed in the two SASE papers, after repair of scanning errors."""

from __future__ import annotations

# --- SASE 2006 -------------------------------------------------------------------------------------------------------

Q1 = """EVENT  SHELF-READING
        WHERE category = 'food' ∧ manufacturer_id = '1'"""

Q2 = """EVENT SEQ(SHELF-READING x, !(COUNTER-READING y),
EXIT-READING z)
WHERE x.id = y.id ∧ x.id = z.id /* or equivalently, [id] */
WITHIN 12 hours"""

# The copy lost the ≠ of the second predicate, which the paper's text gives.
MISPLACED_INVENTORY = """EVENT SEQ(SHELF-READING x, SHELF-READING y,
          ! (ANY(COUNTER-READING, SHELF-READING) z))
WHERE [id] ∧ x.shelf_id ≠ y.shelf_id ∧ x.shelf_id = z.shelf_id
WITHIN 1 hour"""

HEALTHCARE = """EVENT SEQ(MEDICINETAKEN x, MEDICINETAKEN y)
WHERE [name='John'] ∧ [medicine='Antibiotics'] ∧
      (x.amount + y.amount) > 1000
WITHIN 4 hours"""

Q3 = """EVENT SEQ(A x1, B x2, ! (C x3), D x4)
      WHERE [attr1, attr2] ∧ x1.attr3 = '1' ∧ x1.attr4 < x4.attr4
      WITHIN T"""

EXPERIMENT_1 = "EVENT SEQ(E1, E2, E3) WHERE [attr1] WITHIN W"
EXPERIMENT_2 = "EVENT SEQ(E1, E2, E3) WHERE [attr1] WITHIN 10000"
EXPERIMENT_5 = "EVENT SEQ(E1, E2, E3) WHERE [attr1, attr2] WITHIN W"

# --- SASE+ 2008 ------------------------------------------------------------------------------------------------------

QUERY_1 = """PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
a.tag_id = b.tag_id
and a.tag_id = c.tag_id
/* equivalently, [tag_id] */ }
WITHIN 12 hours"""

QUERY_2 = """PATTERN SEQ(Alert a, Shipment+ b[])
WHERE skip_till_any_match(a, b[ ]) {
a.type = 'contaminated'
and b[1].from = a.site
and b[i].from = b[i-1].to }
WITHIN 3 hours"""

QUERY_3 = """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
[symbol]
and a[1].volume > 1000
and a[i].price > avg(a[i-1].price)
and b.volume < 80%*a[a.LEN].volume }
WITHIN 1 hour"""

TEMPLATE = """PATTERN(STOCK+ a[], STOCK b)
WHERE {strategy}(a[], b) {{[symbol] ∧ a[1].price %500==0 ∧ {iterator} ∧ b.volume < 150}}
WITHIN W"""

TEMPLATE_OF_THREE = """PATTERN(STOCK+ a[], STOCK b, STOCK c)
WHERE skip_till_next_match(a[], b, c) {[symbol] ∧ a[1].price %500==0 ∧ a[i].price > min(a[i-1].price)
      ∧ b.volume < 150 ∧ c.price > a[1].price ∧ c.price < a[a.LEN].price}
WITHIN 500 events"""

ITERATORS = {
    "p1": "True",
    "p2": "a[i].price > a[i-1].price",
    "p3_max": "a[i].price > max(a[i-1].price)",
    "p3_min": "a[i].price > min(a[i-1].price)",
    "p3_avg": "a[i].price > avg(a[i-1].price)",
}
TEMPLATES = {
    f"template_{name}_{strategy}": TEMPLATE.format(strategy=strategy, iterator=iterator)
    for name, iterator in ITERATORS.items()
    for strategy in ("partition_contiguity", "skip_till_next_match")
}
PRINTED = {
    "sase_q1": Q1,
    "sase_q2": Q2,
    "sase_misplaced_inventory": MISPLACED_INVENTORY,
    "sase_healthcare": HEALTHCARE,
    "sase_q3": Q3,
    "sase_experiment_1": EXPERIMENT_1,
    "sase_experiment_2": EXPERIMENT_2,
    "sase_experiment_5": EXPERIMENT_5,
    "sase_plus_query_1": QUERY_1,
    "sase_plus_query_2": QUERY_2,
    "sase_plus_query_3": QUERY_3,
    "sase_plus_template_of_three": TEMPLATE_OF_THREE,
    **TEMPLATES,
}
