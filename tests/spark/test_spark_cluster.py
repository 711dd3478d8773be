"""On a cluster of separate processes: a master and two workers, to which Kleene is shipped as a zip."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import site
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import cluster_job
import kleene
from cluster_job import QUERIES, matches
from quick_jvm import QUICK_JVM

SPARK_HOME = Path(pyspark.__file__).parent
JOB = Path(cluster_job.__file__)
PATIENCE = 240  # seconds; a machine may be slow


@dataclass(frozen=True)
class Cluster:
    url: str
    folder: Path
    package: Path
    environment: dict[str, str]

    @contextmanager
    def submitted(self, *arguments, **more_settings):
        """A driver in a process of its own, gone at the end whatever happens."""
        settings = {
            "spark.cores.max": 2,
            "spark.executor.cores": 1,
            "spark.executor.memory": "600m",
            "spark.driver.memory": "600m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": 4,
            # Small partitions stay apart, so that both executors match.
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE}s",
            # Words in the command line by which to find the executors.
            "spark.executor.extraJavaOptions": f"-Dkleene.test={self.folder}",
            "spark.executorEnv.KLEENE_CACHE_DIR": self.folder / "machine_code",
            **more_settings,
        }
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.url, *options]
        with started([*submit, *map(str, arguments)], self.folder / "driver.log", self.environment) as driver:
            yield driver


@contextmanager
def started(command, log, environment):
    """A process in a group of its own; at the end the group is killed."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def processes_of(folder):
    """The processes in whose command line the folder stands."""
    lines = subprocess.check_output(["ps", "-ww", "-eo", "pid=,args="], text=True).splitlines()
    return {int(line.split()[0]): line for line in lines if str(folder) in line}


def wait_until(condition, what, log, process):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end or process.poll() is not None:
            pytest.fail(f"waited in vain for {what}:\n{log.read_text(errors='replace')[-3000:]}", pytrace=False)
        time.sleep(0.1)
    return found


def told(pattern, what, log, process):
    """What a process wrote to its log in a pattern's place: where it listens, say, once it does."""
    found = wait_until(lambda: re.search(pattern, log.read_text(errors="replace")), what, log, process)
    return found.group(1)


def interpreter_without_kleene(folder):
    """An interpreter that has all that Kleene needs, but not Kleene.

    Folders named in a .pth file are searched for modules, but not for further .pth files, by which alone an editable
    installation is found.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    modules = subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True)
    Path(modules.strip(), "needed.pth").write_text("\n".join(site.getsitepackages()))
    return python


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    package = folder / "kleene.zip"
    zipfile.main(["-c", str(package), str(Path(kleene.__file__).parent)])  # what `make package` does
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "SPARK_"))}
    environment |= {
        "JDK_JAVA_OPTIONS": QUICK_JVM,
        "PYSPARK_PYTHON": str(interpreter_without_kleene(folder / "interpreter")),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "600m",
        "SPARK_DAEMON_JAVA_OPTS": f"-Dkleene.test={folder}",
        "KLEENE_CACHE_DIR": str(folder / "machine_code_of_driver"),
    }
    launch = [str(SPARK_HOME / "bin" / "spark-class")]
    master = [*launch, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
    worker = [*launch, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"]
    worker += ["--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / "work")]
    log = folder / "master.log"
    try:
        with started([*master, "--webui-port", "0"], log, environment) as process:
            url = told(r"Starting Spark master at (spark://\S+)", "the master", log, process)
            with (
                started([*worker, url], folder / "worker_1.log", environment),
                started([*worker, url], folder / "worker_2.log", environment),
            ):
                wait_until(lambda: log.read_text().count("Registering worker") == 2, "the workers", log, process)
                yield Cluster(url, folder, package, environment)
    finally:
        # Python's workers have groups of their own, and go when their executor has gone.
        end = time.monotonic() + 20
        while (left := processes_of(folder)) and time.monotonic() < end:
            time.sleep(0.1)
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        assert not left


@pytest.fixture(scope="module")
def events():
    choose = random.Random(7)
    kinds = choose.choices(["Shelf", "Register", "Exit"], [6, 1, 2], k=60_000)
    return pa.table(
        {
            "type": kinds,
            "t": range(60_000),
            "tag": [f"tag {choose.randrange(9_000)}" for _ in kinds],
            "weight": [choose.randrange(10) for _ in kinds],
        }
    )


@pytest.fixture(scope="module")
def data(cluster, events):
    path = cluster.folder / "events.parquet"
    pq.write_table(events, path)
    return path


def finished(driver, cluster, result):
    log = cluster.folder / "driver.log"
    assert driver.wait(PATIENCE) == 0, log.read_text(errors="replace")[-5000:]
    return json.loads(result.read_text())


def test_shipped_package_finds_the_same_matches_on_a_cluster(cluster, data, events, tmp_path):
    result = tmp_path / "result.json"
    with cluster.submitted("--py-files", cluster.package, JOB, data, result) as driver:
        found = finished(driver, cluster, result)
    assert len(found["executors"]) == 2
    assert all("kleene.zip/kleene/" in file for file in [*found["tasks"], found["driver"]]), found["tasks"]
    assert str(Path(kleene.__file__).parent) not in [found["driver"], *found["tasks"]]
    expected = matches(QUERIES, events)
    assert all(expected.values())
    assert found["matches"] == expected
    assert list((cluster.folder / "machine_code").iterdir())


@pytest.mark.heavy
def test_killed_executor_changes_nothing(cluster, data, events, tmp_path):
    result, markers = tmp_path / "result.json", tmp_path / "markers"
    markers.mkdir()
    with cluster.submitted("--py-files", cluster.package, JOB, data, result, markers) as driver:
        # While the tasks that match are at work: what the executor had shuffled for them is lost as well.
        first = wait_until(lambda: [*markers.iterdir()], "a task", cluster.folder / "driver.log", driver)[0]
        executor = int(first.name.split("-")[1])
        assert "CoarseGrainedExecutorBackend" in processes_of(cluster.folder)[executor]
        os.kill(executor, signal.SIGKILL)
        found = finished(driver, cluster, result)
    # Two queries on four Spark partitions each, and what was lost once more.
    assert len([*markers.iterdir()]) > 8
    assert found["matches"] == matches(QUERIES[:2], events)


@pytest.mark.heavy
def test_client_of_spark_connect_ships_the_package(cluster, data, events, monkeypatch):
    from pyspark.sql.connect.session import SparkSession

    listening = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": 0}
    log = cluster.folder / "driver.log"
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
    with cluster.submitted(*server, **listening) as driver:
        port = told(r"Spark Connect server started at: \S+?(\d+)\s", "the server", log, driver)
        monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        try:
            frame = session.read.parquet(str(data)).repartition(4)
            with pytest.raises(Exception, match="which cannot import kleene"):
                matches(QUERIES[:1], frame)
            session.addArtifact(str(cluster.package), pyfile=True)
            assert matches(QUERIES[:1], frame) == matches(QUERIES[:1], events)
        finally:
            session.stop()
