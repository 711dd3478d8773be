"""What is published: one version everywhere, and distributions that hold what they must."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import kleene

ROOT = Path(__file__).parents[2]


def verbs() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_version_is_the_same_wherever_it_is_told():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    extension = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    newest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert {citation["version"], extension["version"], newest[1]} == {kleene.__version__}


def test_the_workflow_runs_verbs_that_exist():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert "make test" in runs
    assert {run.removeprefix("make ") for run in runs} <= verbs()


def test_the_citation_names_the_four_papers():
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert [paper["year"] for paper in references] == [2006, 2008, 2012, 2013]


@pytest.mark.slow
def test_both_distributions_hold_what_is_needed(tmp_path):
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [source], [wheel] = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    assert kleene.__version__ in source.name
    with tarfile.open(source) as opened:
        inside = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/kleene/py.typed"} <= inside
    assert not any(name.startswith((".venv", "build", "tests")) for name in inside)
    with zipfile.ZipFile(wheel) as zipped:
        names = set(zipped.namelist())
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "kleene").rglob("*.py")}
    assert modules <= names
    assert {"kleene/py.typed", "kleene/lang/sase.lark", "kleene/lang/expressions.lark"} <= names
