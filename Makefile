# Every verb sets up what it needs; `make help` lists them.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
  command -v $$name >/dev/null 2>&1 && $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo $$name && break; done)

.DEFAULT_GOAL := help
.PHONY: help setup demo docs check test test-heavy test-versions test-install messages dist package lint format types bench-all-matches bench-kernels bench-local bench-plans bench-results bench-rip bench-scans bench-spark bench-start bench-steps bench-stream bench-windows \
  fuzz soak lock clean check-python check-java

# Behind the @ stands about how long a verb takes on two cores, once everything is set up.
help: ## List the verbs, with how long they take on two cores
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' \
	  '{split($$2, told, " @ "); printf "  make %-14s %-12s %s\n", $$1, told[2], told[1]}'

setup: $(STAMP) ## Make .venv and install everything into it @ long

$(STAMP): pyproject.toml constraints.txt | check-python
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing: install it (on Debian and Ubuntu: apt-get install python3-venv)."; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[spark,connect,pipelines,plot,editor,docs,dev]' --constraint constraints.txt
	@touch $@

check-python:
	@test -n "$(PYTHON)" || { echo "Kleene needs Python 3.11 or newer: install it (on Debian and Ubuntu: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3.11"; exit 1; }

check-java:
	@java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	version=$$($$java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	test -n "$$version" && test "$$version" -ge 17 || { echo "Spark needs Java 17 or newer: install it (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME."; exit 1; }

# Offline, and strict: a warning, such as a link that leads nowhere, is an error.
docs: $(STAMP) ## Build the documentation site into build/site, to be opened as files @ half a minute
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "The site is in build/site: open build/site/index.html."

demo: check-java $(STAMP) ## Find thieves and misplaced items in a generated store, on an embedded Spark @ 1 minute
	@$(BIN)/python examples/retail_store.py

PROCESSES ?= 2

check: lint types ## Lint, types, and all tests that need neither Spark nor machine code and are not slow @ 2 minutes
	$(BIN)/python -m pytest --quick --numprocesses $(PROCESSES) --max-worker-restart 0

# One process for the tests that need Spark, and one for the others; see tests/support/sharing.py.
test: check-java lint types ## Lint, types, and all tests but a few heavy ones @ 20 minutes
	$(BIN)/python -m pytest -m 'not heavy' --numprocesses $(PROCESSES) --max-worker-restart 0

test-heavy: check-java $(STAMP) ## The tests that kill executors and streams of Spark, and clients of a cluster @ 4 minutes
	$(BIN)/python -m pytest -m heavy

# The oldest and the newest of each library, and every Python, that pyproject.toml allows.
SPARK_VERSIONS ?= 4.0.0 4.1.0 4.2.0 4.3.0
LIBRARY_VERSIONS ?= oldest newest pandas-3 python-3.12 python-3.13
oldest := numba==0.60.0 numpy==1.26.4 pyarrow==20.0.0 pandas==2.2.0 polars==1.12.0 duckdb==1.4.0 sqlglot==30.24.0
newest := --upgrade numba numpy pyarrow pandas polars duckdb
pandas-3 := --upgrade pandas>=3
# Machine code depends on numba, NumPy and pyarrow alone, so the others run the quick tests.
TESTS_WITH_oldest := -m 'not spark'
TESTS_WITH_newest := -m 'not spark'
# A test or more of each way into Spark and out of it; all of them take a quarter of an hour for each version.
SPARK_TESTS ?= $(addprefix tests/spark/test_,declared_match.py matrix.py spark_batch.py spark_connect.py spark_engines.py \
  spark_functions.py spark_hostile.py spark_nested.py spark_notations.py spark_sql.py spark_totals.py stream.py \
  stream_clock.py stream_watermark.py table_function.py)

test-versions: check-java $(LIBRARY_VERSIONS:%=test-with-%) $(SPARK_VERSIONS:%=test-with-pyspark-%) ## Run the tests with the oldest and newest libraries, Pythons and versions of Spark @ hours

# The interpreter of a version: on the path, or among those of pyenv, whose names on the path may lead nowhere.
python_called = $(or $(shell for name in python$(1) $$HOME/.pyenv/versions/$(1).*/bin/python; do \
  $$name -c '' >/dev/null 2>&1 && echo $$name && break; done),$(error Python $(1) is needed for this: install it, or leave it out of LIBRARY_VERSIONS))

# Without Spark: an environment of its own, on the libraries that its name stands for.
test-with-%: | check-python
	$(if $(filter python-%,$*),$(call python_called,$(*:python-%=%)),$(PYTHON)) -m venv --clear .venvs/$*
	.venvs/$*/bin/pip install --quiet --disable-pip-version-check --editable '.[sql]' pytest pytest-xdist hypothesis polars pandas pyspark
	$(if $($*),.venvs/$*/bin/pip install --quiet --disable-pip-version-check $($*))
	.venvs/$*/bin/python -m pytest $(or $(TESTS_WITH_$*),--quick) --numprocesses $(PROCESSES) tests src

test-with-pyspark-%: | check-python
	@test -x .venvs/$*/bin/python || $(PYTHON) -m venv .venvs/$*
	grep -vE '^(pyspark|py4j)==' constraints.txt > .venvs/$*/constraints.txt
	.venvs/$*/bin/pip install --quiet --disable-pip-version-check --editable '.[spark,connect,dev]' 'pyspark==$*' --constraint .venvs/$*/constraints.txt
	.venvs/$*/bin/python -m pytest $(SPARK_TESTS)

test-install: check-java | check-python ## Install the wheel with each extra into an empty environment, and use it @ 10 minutes
	$(PYTHON) tests/install/check_install.py

dist: $(STAMP) ## Make the source distribution and the wheel that are published, in dist @ seconds
	rm -rf dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --no-isolation --outdir dist .

package: | check-python ## Make dist/kleene.zip, to be shipped to the workers of a cluster @ seconds
	@mkdir -p dist && rm -f dist/kleene.zip
	$(PYTHON) -m zipfile -c dist/kleene.zip src/kleene

lint: $(STAMP) ## Check style @ seconds
	$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	$(BIN)/ruff check --quiet .

format: $(STAMP) ## Format the code, and mend what ruff can mend @ seconds
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet .

types: $(STAMP) ## Check types @ seconds
	$(BIN)/mypy

bench-all-matches: $(STAMP) ## Measure aggregates over all matches: contamination, and growth with the graph @ long
	$(BIN)/python benchmarks/all_matches.py

bench-kernels: $(STAMP) ## Measure the compiled engine: speed, starts, growth, the papers' relations @ long
	$(BIN)/python benchmarks/kernels.py

bench-local: $(STAMP) ## Measure whole calls in process: beside DuckDB and polars, in one thread and in all @ long
	$(BIN)/python benchmarks/local.py

bench-plans: $(STAMP) ## Measure query plans: what each optimization is worth, beside the claims of SASE 2006 @ long
	$(BIN)/python benchmarks/plans.py

bench-results: $(STAMP) ## Measure what results cost: memory in batches and whole, and time of measures @ long
	$(BIN)/python benchmarks/results.py

bench-rip: $(STAMP) ## Repeat the experiments of RIP 2013: run-based and state-based parallelism, in threads @ long
	$(BIN)/python benchmarks/rip.py

bench-scans: check-java $(STAMP) ## Measure files matched where they lie: in process, on Spark, growth, memory @ long
	$(BIN)/python benchmarks/scans.py

bench-spark: check-java $(STAMP) ## Measure jobs on Spark: beside the floor, beside loops by hand, ranges, memory, growth @ long
	$(BIN)/python benchmarks/spark.py

bench-start: check-java $(STAMP) ## Measure new queries: the first call of a process, a hundred rules, the tiers side by side, two workers @ 10 minutes
	$(BIN)/python benchmarks/start.py

bench-stream: check-java $(STAMP) ## Measure streams on Spark: beside the floor, beside a state for each key by hand, state, latency @ long
	$(BIN)/python benchmarks/stream.py

bench-steps: $(STAMP) ## Measure patterns in steps: beside the same questions in SASE+, and the interpreter @ 1 minute
	$(BIN)/python benchmarks/steps.py

bench-windows: $(STAMP) ## Measure patterns in windows: beside MATCH_RECOGNIZE of the same pattern, growth @ long
	$(BIN)/python benchmarks/windows.py

fuzz: $(STAMP) ## Compare the engines on 20,000 generated queries, forge 100,000 snapshots, check bounds @ long
	$(BIN)/python benchmarks/fuzz.py

soak: check-java $(STAMP) ## Kill streams on Spark 20 times and compare what they gave out with the answer in batch @ long
	$(BIN)/python benchmarks/soak.py

messages: $(STAMP) ## Write every error and warning that the quick tests meet to build/messages.txt, to be read @ 3 minutes
	@rm -rf build/messages && mkdir -p build/messages
	$(BIN)/python -m pytest --quick --numprocesses $(PROCESSES) --max-worker-restart 0 --messages build/messages
	@cat build/messages/*.txt > build/messages.txt && echo "The messages are in build/messages.txt."

lock: check-python ## Write constraints.txt anew: the newest versions that pyproject.toml allows @ long
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[spark,connect,pipelines,plot,editor,docs,dev]'
	{ echo "# The versions that the tests run with; made by 'make lock'."; $(BIN)/pip freeze --exclude-editable; } > constraints.txt
	@touch $(STAMP)

clean: ## Remove what the other verbs made @ seconds
	rm -rf $(VENV) .venvs dist .mypy_cache .pytest_cache .ruff_cache .hypothesis demo_output spark-warehouse build/messages build/messages.txt build/site
