"""Bars of jobs on Spark, on a classic session and by Spark Connect."""

import threading

import pytest

from kleene import watching
from kleene.spark import watching as on_spark


class Reports(list):
    def __call__(self, done, total, detail=""):
        self.append((done, total, detail))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.append("closed")


@pytest.fixture
def reports(monkeypatch):
    found = Reports()
    monkeypatch.setattr(on_spark, "bar", lambda what: found)
    monkeypatch.setattr(watching, "_is_shown", True)
    return found


def test_tasks_of_a_job_are_counted(spark, reports):
    done = threading.Event()

    def work():
        spark.range(0, 4_000_000, 1, 8).selectExpr("sum(sqrt(id))").collect()
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    tracker = spark.sparkContext.statusTracker()
    while not done.is_set():
        if tracker.getActiveJobsIds():
            on_spark._show_jobs(tracker)
    worker.join()
    assert reports[-1] == "closed"
    assert any(isinstance(report, tuple) and report[2].endswith("tasks") for report in reports)


def test_by_connect_each_operation_has_a_bar(reports):
    class Stage:
        num_completed_tasks, num_tasks = 3, 8

    handler = on_spark._RemoteBar()
    handler([Stage, Stage], 2, "one", False)
    handler(None, 0, "one", True)
    handler(None, 0, "another", True)
    assert reports == [(6, 16, "6 of 16 tasks"), "closed"]


def test_a_session_is_watched_once(spark, reports):
    before = threading.active_count()
    on_spark.watch_jobs(spark)
    on_spark.watch_jobs(spark)
    assert threading.active_count() <= before + 1
