"""Plans: what is chosen and why, hints, statistics, contradictions, and what EXPLAIN says about them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from flat_options import call_of
from kleene.analysis.analyze import analyze
from kleene.engine.compiled import stacks
from kleene.lang.sase import parse
from kleene.options.statistics import Statistics
from kleene.plan.operators import (
    NegationFilter,
    Pipeline,
    RunScan,
    Selection,
    SequenceConstruction,
    SequenceScan,
    WindowFilter,
)
from kleene.plan.plan import ByKey, OneStream, Plan
from kleene.schema import FLOAT, INTEGER, STRING, EventSchema

SCHEMA = EventSchema(
    {"t": INTEGER, "type": STRING, "x": INTEGER, "y": INTEGER, "name": STRING, "weight": FLOAT}, type_column="type"
)


def plan_of(text: str, **options: Any) -> Plan:
    return call_of(parse(text), **options).plan(analyze(parse(text), SCHEMA, ("t",)))


def pipeline_of(text: str, **options: Any) -> Pipeline:
    found = plan_of(text, **options).pipeline
    assert found is not None
    return found


def events(count: int = 400, seed: int = 5) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "type": [chance.choice("ABCD") for _ in range(count)],
            "t": list(range(count)),
            "x": [chance.randrange(4) for _ in range(count)],
            "y": [chance.randrange(3) for _ in range(count)],
        }
    )


class TestOperators:
    def test_sequence_operators_run_what_has_no_kleene_plus(self) -> None:
        assert pipeline_of("EVENT SEQ(A a, B b)").is_sequence

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("PATTERN SEQ(A+ a[], B b)", "'a' is a Kleene plus"),
            ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [x] }", "under skip_till_next_match"),
            ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [x] }", "under strict_contiguity"),
            ("EVENT SEQ(A a, B b) WHERE [x] WITHIN 10 events", "counted in each partition"),
            ("EVENT SEQ(A a, B b) WHERE a.x + b.x > 3", "a.x + b.x > 3 can fail"),
        ],
    )
    def test_runs_are_chosen_with_the_reason(self, text: str, reason: str) -> None:
        plan = pipeline_of(text)
        assert plan.find(RunScan) is not None
        assert reason in plan.notes[0]

    def test_sums_that_cannot_overflow_by_the_values_there_are(self) -> None:
        text = "EVENT SEQ(A a, B b) WHERE a.x * b.x - 3 > a.y"
        small = Statistics(ranges={"x": (-5, 2**31), "y": (0, 9)})
        assert pipeline_of(text, statistics=small).is_sequence
        assert not pipeline_of(text, statistics=Statistics(ranges={"x": (-5, 2**40)})).is_sequence

    def test_compressed_output_and_algorithms_are_of_runs(self) -> None:
        assert not pipeline_of("EVENT SEQ(A a, B b)", is_compressed=True).is_sequence
        assert not pipeline_of("EVENT SEQ(A a, B b)", algorithm="basic").is_sequence

    def test_the_basic_plan_has_every_operator(self) -> None:
        late = {
            "scan": "basic",
            "second_test": "selection",
            "window": "late",
            "simple_predicates": "late",
            "parameterized_predicates": "late",
            "negation": "scan_all",
            "negation_place": "late",
        }
        plan = pipeline_of("EVENT SEQ(A a, !(C c), B b) WHERE [x] AND a.y > 2 WITHIN 10", plan=late)
        kinds = [type(operator).__name__ for operator in plan.operators]
        assert kinds == [
            "SequenceScan",
            "SequenceConstruction",
            "Selection",
            "WindowFilter",
            "NegationFilter",
            "Transformation",
        ]

    def test_an_operator_without_work_is_not_in_the_plan(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b) WHERE [x] AND a.y > 2 WITHIN 10")
        assert plan.find(Selection) is None
        assert plan.find(WindowFilter) is None
        assert plan.find(NegationFilter) is None


class TestPlaces:
    def test_simple_predicates_and_the_test_go_to_the_scan(self) -> None:
        scan = pipeline_of("EVENT SEQ(A a, B b) WHERE [x] AND a.y > 2 WITHIN 10").get(SequenceScan)
        assert (scan.algorithm, [str(test) for test in scan.tests], len(scan.predicates)) == ("pais", ["[x]"], 1)
        assert scan.window is not None

    def test_the_most_selective_test_by_statistics(self) -> None:
        text = "EVENT SEQ(A a, B b) WHERE [x, y]"
        known = {"distinct": {"x": 10, "y": 500}}
        assert [str(test) for test in pipeline_of(text).get(SequenceScan).tests] == ["[x]"]
        assert [str(test) for test in pipeline_of(text, statistics=known).get(SequenceScan).tests] == ["[y]"]

    def test_multi_pais_keeps_the_other_tests_for_selection_too(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b) WHERE [x, y]", plan={"second_test": "multi_pais"})
        assert len(plan.get(SequenceScan).tests) == 2
        assert [str(test) for test in plan.get(Selection).tests] == ["[y]"]

    def test_a_chain_of_equalities_is_a_test(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b, C c) WHERE a.x = b.x AND c.x = b.x")
        assert [str(test) for test in plan.get(SequenceScan).tests] == ["[x]"]
        assert not plan.get(SequenceConstruction).predicates

    def test_a_chain_that_misses_a_component_is_none(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b, C c) WHERE b.x = c.x")
        assert plan.get(SequenceScan).algorithm == "ais"
        assert len(plan.get(SequenceConstruction).predicates) == 1

    def test_different_attributes_and_different_types(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b) WHERE a.x = b.y")
        assert [str(test) for test in plan.get(SequenceScan).tests] == ["[x = y]"]
        assert pipeline_of("EVENT SEQ(A a, B b) WHERE a.x = b.weight").get(SequenceScan).algorithm == "ais"

    def test_a_negation_waits_where_pushing_it_saves_nothing(self) -> None:
        text = "EVENT SEQ(A a, B b, !(C c), D d) WHERE [x] WITHIN 100"
        few = {"events": {"A": 1, "B": 1000, "C": 1000, "D": 1000}, "distinct": {"x": 50}}
        many = {"events": {"A": 5000, "B": 1000, "C": 1000, "D": 1000}, "distinct": {"x": 5}}
        assert pipeline_of(text, statistics=few).get(NegationFilter).negations
        assert pipeline_of(text, statistics=many).get(SequenceConstruction).negations

    def test_a_negation_that_one_event_decides_ends_runs(self) -> None:
        plan = pipeline_of("PATTERN SEQ(A+ a[], !(C c), B b) WHERE c.y > 2 AND [x]")
        assert len(plan.get(RunScan).negations) == 1
        assert plan.find(NegationFilter) is None


class TestSplit:
    def test_implied_by_equalities(self) -> None:
        assert plan_of("EVENT SEQ(A a, !(C c), B b) WHERE a.x = b.x AND c.x = a.x").split == ByKey(("x",), True)

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            ("EVENT SEQ(A a, !(C c), B b) WHERE a.x = b.x", {}),  # the negation sees all events
            ("EVENT SEQ(A a, B b) WHERE a.x = b.y", {}),
            ("EVENT SEQ(A a, B b) WHERE a.x = b.x", {"format": "non_overlapping"}),
            ("EVENT SEQ(A a, B b) WHERE a.x = b.x WITHIN 10 events", {}),
        ],
    )
    def test_not_implied_where_it_would_change_the_meaning(self, text: str, options: dict[str, Any]) -> None:
        assert isinstance(plan_of(text, **options).split, OneStream)


class TestHints:
    @pytest.mark.parametrize(
        ("hints", "words"),
        [
            ({"scann": "ais"}, ["no hint 'scann'", "Hints: operators, scan", "Did you mean 'scan'"]),
            ({"scan": "fast"}, ["'scan' cannot be 'fast'", "'basic', 'ais', 'pais'"]),
            ({"scan": 3}, ["cannot be 3"]),
            ("ais", ["plan is a dict"]),
            (
                {"operators": "nfa", "scan": "ais"},
                ["for sequence operators", "these hints remain: operators, negation"],
            ),
            ({"scan": "ais", "second_test": "multi_pais"}, ["needs partitioned stacks", "scan can be: 'pais'"]),
            ({"scan": "pais"}, ["needs an equivalence test", "scan can be: 'basic', 'ais'"]),
            ({"second_test": "multi_pais"}, ["needs two equivalence tests", "can be: 'selection', 'dynamic'"]),
        ],
    )
    def test_what_cannot_be_is_an_error_that_lists_what_can(self, hints: Any, words: list[str]) -> None:
        with pytest.raises(kleene.UnsupportedError) as error:
            plan_of("EVENT SEQ(A a, B b)", plan=hints)
        for part in words:
            assert part in str(error.value)

    def test_sequence_operators_for_a_kleene_plus(self) -> None:
        with pytest.raises(kleene.UnsupportedError, match="operators can be: 'nfa'"):
            plan_of("EVENT SEQ(A+ a[], B b)", plan={"operators": "sequence"})
        with pytest.raises(kleene.UnsupportedError, match="'a' is a Kleene plus"):
            plan_of("EVENT SEQ(A+ a[], B b)", plan={"window": "late"})

    def test_hints_are_not_for_other_queries_or_the_plain_engine(self) -> None:
        table = events(5)
        with pytest.raises(kleene.UnsupportedError, match="plan is for SASE queries"):
            kleene.match_recognize("ORDER BY t MEASURES A.t AS t PATTERN (A)").match(
                table, engine=kleene.EngineOptions(plan={"scan": "ais"})
            )
        with pytest.raises(kleene.UnsupportedError, match="reference engine takes no plan"):
            kleene.sase("EVENT A a").match(
                table, order_by="t", engine=kleene.EngineOptions("reference", plan={"scan": "ais"})
            )


class TestStatistics:
    @pytest.mark.parametrize(
        "given",
        [
            3,
            {"rows": {}},
            {"events": 5},
            {"events": {"A": -1}},
            {"distinct": {"x": "many"}},
            {"distinct": {"x": 10**400}},
        ],
    )
    def test_bad_ones_are_errors(self, given: Any) -> None:
        with pytest.raises(kleene.UnsupportedError, match="statistics"):
            plan_of("EVENT SEQ(A a, B b)", statistics=given)

    def test_rare_starts_are_for_runs(self) -> None:
        rare = {"events": {"A": 10, "B": 5000, "C": 5000}, "distinct": {"x": 1000}}
        plan = pipeline_of("EVENT SEQ(A a, B b, C c) WHERE a.x = b.x WITHIN 1000", statistics=rare)
        assert "few of the events so far lead on" in plan.notes[0]

    def test_a_large_table_is_sampled(self) -> None:
        chance = random.Random(1)
        count = 12_000
        table = pa.table(
            {
                "type": [chance.choice("AB") for _ in range(count)],
                "t": range(count),
                "x": [chance.randrange(5) for _ in range(count)],
                "y": [chance.randrange(300) for _ in range(count)],
            }
        )
        text = kleene.sase("EVENT SEQ(A a, B b) WHERE [x, y] WITHIN 100").explain(table, order_by="t")
        assert "pais by [y], the most selective test with about 300 values" in text


class TestContradictions:
    TEXT = "EVENT SEQ(A a, B b) WHERE a.x > 5 AND a.x < 3"

    def test_an_empty_result_of_the_right_columns_and_a_warning(self) -> None:
        with pytest.warns(kleene.KleeneWarning, match="no matches: a.x > 5 and a.x < 3 cannot both hold"):
            found = kleene.sase(self.TEXT).match(events(), order_by="t")
        assert found.num_rows == 0
        assert found.column_names == ["a", "b", "match_start", "match_end"]

    def test_in_streams_and_compressed(self) -> None:
        query = kleene.sase(self.TEXT)
        progress = query.progress(events(), order_by="t", engine="generated")
        assert progress.feed(events()).num_rows == 0
        assert len(query.compressed(events(), order_by="t")) == 0

    def test_of_a_kleene_variable(self) -> None:
        plan = pipeline_of("PATTERN SEQ(A+ a[], B b) WHERE a[1].x > 5 AND a[1].x < 3 AND [y]")
        assert plan.is_empty

    def test_not_of_events_that_need_not_be_there(self) -> None:
        text = "PATTERN SEQ(A+ a[], B b) WHERE b.x > a[i].x AND b.x < a[i].x AND [y]"
        assert not pipeline_of(text).is_empty
        assert kleene.sase(text).match(events(24), order_by="t").num_rows > 0

    def test_not_where_an_error_could_be_hidden(self) -> None:
        assert not pipeline_of("EVENT A a WHERE a.y * a.y > 0 AND a.x > 5 AND a.x < 3").is_empty

    def test_a_negation_of_nothing_is_left_out(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, !(C c), B b) WHERE c.x > 5 AND c.x < 3")
        assert plan.find(NegationFilter) is None
        assert plan.warnings[0].startswith("a negation forbids nothing")


class TestAnalyze:
    QUERY = kleene.sase("EVENT SEQ(A a, B b, !(C c), D d) WHERE [x, y] AND a.t > 10 WITHIN 200")

    def test_counts_of_operators_fit_together(self) -> None:
        late = {"second_test": "selection", "window": "late", "negation_place": "late"}
        text = self.QUERY.explain(
            events(), order_by="t", analyze=True, engine=kleene.EngineOptions("generated", plan=late)
        )
        matches = self.QUERY.match(events(), order_by="t").num_rows
        lines = [line.strip(" │└─") for line in text.splitlines()]
        made = next(line for line in lines if line.startswith("→") and "sequences" in line)
        passed = [line for line in lines if line.startswith("→") and " in, " in line]
        assert len(passed) == 3  # selection, window, negation
        sequences = made.split(" sequences")[0].split()[-1]
        for line in reversed(passed):
            assert line.startswith(f"→ {sequences} in, ")
            sequences = line.split(" out")[0].split()[-1]
        assert sequences == f"{matches:,}"
        assert f"→ {matches:,} rows" in text
        assert "400 events" in text

    @pytest.mark.parametrize(
        "query",
        [
            kleene.sase("PATTERN SEQ(A+ a[], !(C c), B b) WHERE [x] AND c.y > a[1].y WITHIN 20 HAVING a.LEN > 1"),
            kleene.sase("EVENT SEQ(A a, B b) WHERE [x] WITHIN 20"),
            kleene.sase("EVENT SEQ(A a, !(B b)) WHERE [x] WITHIN 20"),
        ],
    )
    def test_rows_are_those_of_match(self, query: kleene.Query) -> None:
        rows = query.match(events(), order_by="t").num_rows
        text = query.explain(events(), order_by="t", analyze=True, engine="generated")
        assert f"400 events, {rows:,} rows in " in text

    def test_of_a_row_pattern(self) -> None:
        query = kleene.match_recognize("ORDER BY t MEASURES A.t AS s PATTERN (A B+) DEFINE B AS B.x > A.x")
        rows = query.match(events()).num_rows
        assert f"{rows:,} rows in" in query.explain(events(), analyze=True)

    @pytest.mark.parametrize(("text", "engine"), [(TestContradictions.TEXT, "auto"), ("EVENT A a", "reference")])
    def test_says_when_the_interpreter_answered_and_only_then(self, text: str, engine: str) -> None:
        shown = kleene.sase(text).explain(events(), order_by="t", analyze=True, engine=engine)
        assert ("the plain interpreter answered" in shown) == (engine == "reference")

    def test_needs_events(self) -> None:
        with pytest.raises(kleene.UnsupportedError, match="Give it a table"):
            self.QUERY.explain(analyze=True)


def test_construction_goes_on_where_it_was_after_a_filter_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Construction stops when there is no more room for sequences; a filter must not touch what it goes on from."""
    monkeypatch.setattr(stacks, "SEQUENCES", 3)
    query = kleene.sase("EVENT SEQ(A a, B b, C c) WHERE [y] WITHIN 40")
    expected = query.match(events(200), order_by="t", engine="reference")
    assert expected.num_rows > 50
    for second in ("dynamic", "selection"):
        hints = {"scan": "ais", "second_test": second}
        assert query.match(events(200), order_by="t", engine=kleene.EngineOptions("generated", plan=hints)).equals(
            expected
        )


class TestStreams:
    def test_a_negation_without_a_window_in_time_keeps_only_what_an_open_event_may_need(self) -> None:
        query = kleene.sase("EVENT SEQ(A a, !(C c), B b) WHERE c.x > a.x WITHIN 5 events")
        progress = query.progress(
            events(), order_by="t", engine=kleene.EngineOptions("generated", plan={"operators": "sequence"})
        )
        for number in range(5):
            piece = events(200, seed=number)
            progress.feed(piece.set_column(1, "t", pa.array(range(200 * number, 200 * number + 200))))
            assert progress._progress.held().events < 20

    def test_stacks_and_snapshots_do_not_stay_as_large_as_they_once_were(self) -> None:
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE [x] WITHIN 5000")
        many = pa.table({"type": ["A"] * 4000, "t": range(4000), "x": range(4000)})
        few = pa.table({"type": ["A"] * 3, "t": [20_000, 20_001, 30_000], "x": [1, 2, 3]})
        progress = query.progress(many, order_by="t", engine="generated")
        progress.feed(many)
        large = len(progress.snapshot())
        progress.feed(few)
        small = progress.snapshot()
        assert len(small) < large / 4
        again = query.progress(many, order_by="t", engine="generated", snapshot=small)
        found = again.feed(pa.table({"type": ["B"], "t": [30_001], "x": [3]}))
        assert found.column("match_start").to_pylist() == [30_000]

    def test_nothing_is_kept_of_a_stream_without_matches(self) -> None:
        query = kleene.sase(TestContradictions.TEXT)
        progress = query.progress(events(), order_by="t")
        progress.feed(events())
        again = query.progress(events(), order_by="t", snapshot=progress.snapshot())
        assert again.finish().num_rows == 0

    def test_without_statistics_an_untied_last_event_is_for_runs(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, B b, C c) WHERE a.x = b.x")
        assert "nothing ties the last event" in plan.notes[0]


class TestSmallThings:
    def test_a_window_of_events_on_stacks_of_several_partitions(self) -> None:
        table = pa.table({"type": ["Z"] * 10 + ["A", "A", "B"], "t": range(13), "x": [1] * 11 + [2, 1]})
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE [x = 1] WITHIN 5 events")
        found = query.match(
            table, order_by="t", engine=kleene.EngineOptions("generated", plan={"simple_predicates": "late"})
        )
        assert found.num_rows == query.match(table, order_by="t", engine="reference").num_rows == 1

    def test_a_bracketed_test_is_not_implied_again(self) -> None:
        plan = pipeline_of("EVENT SEQ(A a, !(C c), B b) WHERE [x] AND a.x = b.x")
        assert [str(test) for test in plan.tests] == ["[x]"]
        assert not plan.get(SequenceConstruction).tests

    def test_no_code_for_nothing(self) -> None:
        with pytest.raises(kleene.UnsupportedError, match="no match can exist"):
            kleene.sase(TestContradictions.TEXT).explain(events(), order_by="t", code=True)

    def test_an_error_behind_a_contradiction(self) -> None:
        text = "PATTERN SEQ(A+ a[], B b) WHERE a[i].x + a[1].x > 0 AND b.x > 5 AND b.x < 3"
        assert not pipeline_of(text).is_empty

    def test_given_statistics_do_not_hide_the_values_there_are(self) -> None:
        count = 12_000
        table = pa.table({"type": ["A", "B"] * (count // 2), "t": range(count), "x": [1] * count, "y": [2] * count})
        text = kleene.sase("EVENT SEQ(A a, B b) WHERE [y] AND a.x + 1 < b.x WITHIN 10").explain(
            table, order_by="t", engine=kleene.EngineOptions(statistics={"distinct": {"y": 100}})
        )
        assert "operators  sequence" in text

    def test_programs_explain_what_they_match(self) -> None:
        program = kleene.program("FROM S EVENT SEQ(A a, B b) WHERE [x] RETURN a.x AS x INTO P; FROM P EVENT P p")
        text = program.explain({"S": events()}, order_by="t")
        assert text.count("\nplan\n") == 2
