"""The queries printed in the four papers, after repair of scanning errors."""

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

# --- RIP 2013 --------------------------------------------------------------------------------------------------------

# Section 2, Query 1, as printed.
HEAD_AND_SHOULDERS = """SELECT symbol, left_shoulder_top, head_top,
       right_shoulder_top, point_of_reversal
FROM StockTrade MATCHRECOGNIZE (
PARTITION BY symbol
MEASURES symbol AS s_symbol,
          C.price AS left_shoulder_top,
          G.price AS head_top,
          K.price AS right_shoulder_top,
          M.price AS point_of_reversal
PATTERN (A B* C D* E F* G H* I J* K L* M)
DEFINE
    B AS (B.price ≥ PREV(B.price)),
    C AS (C.price > PREV(C.price)),
    D AS (D.price ≤ PREV(D.price)),
    E AS (E.price < PREV(E.price)
           AND E.price > A.price),
    F AS (F.price ≥ PREV(F.price)),
    G AS (G.price ≥ PREV(G.price)
           AND G.price > C.price),
    H AS (H.price ≤ PREV(H.price)),
    I AS (I.price < PREV(I.price)
           AND I.price > A.price),
    J AS (J.price ≥ PREV(J.price)),
    K AS (K.price > PREV(K.price)
           AND K.price < G.price),
    L AS (L.price ≤ PREV(L.price)),
    M AS (M.price ≤ PREV(M.price)
           AND M.price < E.price
           AND M.price < I.price)
MAXLENGTH 100
)"""

# Appendix A. The copy of Q1 runs into that of Q9; Q5, Q6 and Q9 lost or gained a parenthesis, which is repaired here,
# and Q5 gained the last line of Q9.
RIP_APPENDIX = {
    "rip_q1": """PATTERN
(A B* C D* E F* G H* I J* K L* M)
DEFINE
B AS (B.price > PREV(B.price)),
C AS (C.price > PREV(C.price)),
D AS (D.price <= PREV(D.price)),
E AS (E.price < PREV(E.price)
AND E.price > A.price),
F AS (F.price > PREV(F.price)),
G AS (G.price > PREV(G.price)
AND G.price > C.price),
H AS (H.price <= PREV(H.price)),
I AS (I.price < PREV(I.price)
AND I.price > A.price),
J AS (J.price > PREV(J.price)),
K AS (K.price > PREV(K.price)
AND K.price < G.price),
L AS (L.price <= PREV(L.price)),
M AS (M.price <= PREV(M.price)
AND M.price < E.price
AND M.price < I.price)""",
    "rip_q2": """PATTERN
(A B+ C)
DEFINE
A AS (A.price < 70),
B AS (B.price > 80
AND B.price < 120),
C AS (C.price > 130)""",
    "rip_q3": """PATTERN
(A B+ C+ D+ E+ F)
DEFINE
B AS (B.price > PREV(B.price)
AND B.price > A.price),
C AS (C.price < PREV(C.price)
AND C.price > A.price),
D AS (D.price > PREV(D.price)
AND D.price > A.price),
E AS (E.price < PREV(E.price)
AND E.price > A.price),
F AS (F.price < A.price)""",
    "rip_q4": """PATTERN
(A B* C)
DEFINE
A AS (A.price < 70),
B AS (B.price > PREV(B.price)
AND B.price > A.price),
C AS (C.price > PREV(C.price)
AND C.price > 130)""",
    "rip_q5": """PATTERN
(A B C D E F G H I J K L M)
DEFINE
B AS (B.price > PREV(B.price)),
C AS (C.price > PREV(C.price)),
D AS (D.price < PREV(D.price)),
E AS (E.price < PREV(E.price)
AND E.price > A.price),
F AS (F.price > PREV(F.price)),
G AS (G.price > PREV(G.price)
AND G.price > C.price),
H AS (H.price < PREV(H.price)),
I AS (I.price < PREV(I.price)
AND I.price > A.price),
J AS (J.price > PREV(J.price)),
K AS (K.price > PREV(K.price)
AND K.price < G.price),
L AS (L.price < PREV(L.price)),
M AS (M.price < PREV(M.price)
AND M.price < E.price
AND M.price < I.price)""",
    "rip_q6": """PATTERN
(A B C D E F)
DEFINE
B AS (B.price > PREV(B.price)
AND B.price > A.price),
C AS (C.price < PREV(C.price)
AND C.price > A.price),
D AS (D.price > PREV(D.price)
AND D.price > A.price),
E AS (E.price < PREV(E.price)
AND E.price > A.price),
F AS (F.price < A.price)""",
    "rip_q7": """PATTERN
(A B C)
DEFINE
A AS (A.price < 70),
B AS (B.price > A.price),
C AS (C.price < B.price
AND C.price < A.price)""",
    "rip_q8": """PATTERN
(A B* C+ D+ E+ F)
DEFINE
A AS (A.price < 80),
B AS (B.price > 80
AND B.price < 120),
C AS (C.price < 80),
D AS (D.price > 80
AND D.price < 120),
E AS (E.price > 120),
F AS (F.price > 130)""",
    "rip_q9": """PATTERN
(A B+ C D+ E F+ G H+ I J+ K L+ M)
DEFINE
A AS (A.price < 70),
B AS (B.price > 70
AND B.price < 130),
C AS (C.price > 130),
D AS (B.price > 70
AND D.price < 130),
E AS (E.price < 70),
F AS (F.price > 70
AND F.price < 130),
G AS (G.price > 130),
H AS (H.price > 70
AND H.price < 130),
I AS (I.price < 70),
J AS (J.price > 70
AND J.price < 130),
K AS (K.price > 130),
L AS (L.price > 70
AND L.price < 130),
M AS (M.price < 70)""",
    "rip_q10": """PATTERN
(A B C D E F G H I J K L M)
DEFINE
D AS (D.price < 100),
E AS (E.price > 100),
F AS (F.price < 100
AND F.price > 60),
G AS (G.price > 100
AND G.price < 140),
H AS (H.price < 100
AND H.price > 70),
I AS (I.price > 100
AND I.price < 130),
J AS (J.price < 100
AND J.price > 80),
K AS (K.price > 100
AND K.price < 120),
L AS (L.price < 120
AND L.price > 80),
M AS (M.price > 80
AND M.price < 120)""",
    "rip_q11": """PATTERN
(A B C D E F)
DEFINE
A AS (A.price < 80),
B AS (B.price < 90
AND B.price > 60),
C AS (C.price < 100
AND C.price > 70),
D AS (D.price < 110
AND D.price > 80),
E AS (E.price < 120
AND E.price > 90),
F AS (F.price < 130
AND F.price > 100)""",
    "rip_q12": """PATTERN
(A B C)
DEFINE
A AS (A.price < 90),
B AS (B.price > 110),
C AS (C.price < 90)""",
}

# --- MatchRegex 2012 -------------------------------------------------------------------------------------------------

# Figure 1: the parameters of the operator; what SPL writes around them is another language.
M_SHAPE = {
    "pattern": ". rise+ drop+ rise+ drop* deep",
    "partition_by": "symbol",
    "predicates": {
        "rise": "price>First(price)  && price>=Last(price)",
        "drop": "price>=First(price) && price<Last(price)",
        "deep": "price<First(price)  && price<Last(price)",
    },
    "output": {"symbol": "symbol", "seqNum": "First(seqNum)", "count": "Count()", "maxPrice": "Max(price)"},
}

# Figure 2; tagsEq is a function of SPL there, and one of Python here.
SAME_TAGS = {
    "pattern": ". sameTags+ sameTags5th",
    "partition_by": "author",
    "predicates": {
        "sameTags": "tagsEq(content, First(content))",
        "sameTags5th": "Count() == 5 &&\n                tagsEq(content, First(content))",
    },
    "output": {"count": "Count()", "all": "Collect(content)"},
}

# Section 2.3, and Table 5. The copy of twitter2 has its + before the dot.
NOT_TOO_LONG = "Delta(ts) < 0.5"
TABLE_5 = {
    "finance0": "largeSize priceRise+ priceDrop",
    "finance1": ". rise+ drop+ rise+ drop* deep",
    "finance2": ". rise* riseEnd flat* flatEnd",
    "finance3": "divergence",
    "finance4": "hi gap* lo",
    "finance5": ". notTooLong* largeIncrease",
    "twitter1": ". sameTags+ sameTags5th",
    "twitter2": ".+ disjointTags",
}
