# Two commands are enough: `make run` starts a broker, `make test` passes the tests.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= data
PORT ?= 9092

.PHONY: help run install test test-slowest test-apache test-long mutate simulate lint format bench bench-quick bench-stalls bench-cluster bench-spark bench-streams bench-pipeline bench-connect demo soak soak-kills package clean tools
.DEFAULT_GOAL := help

help:            ## list the targets
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  .*##' $(MAKEFILE_LIST) | sed 's/:[^#]*##/\t/' | expand -t 16

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Barnabas needs Python 3.11 to 3.14 (none found); set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Byte code is made here for our modules alone, on all cores: that of most modules of others is never needed.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --retries 8 --timeout 30
COMPILE = $(BIN)/python -m compileall -q -j 0 src

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --editable .
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --editable '.[dev]'
	@$(COMPILE)
	@touch $@

run: $(VENV)/.run  ## install into .venv and start a broker on 127.0.0.1:9092 (PORT=, DATA=)
	$(BIN)/barnabas start --data $(DATA) --port $(PORT)

tools:           ## kcat, PostgreSQL, MariaDB, Redis, Prometheus, Kerberos and ip, for the tests that use them (Debian and Ubuntu, as root; skipped elsewhere)
	@sh tests/install_tools.sh

# It is compiled against the headers of Kerberos: without them, its tests are skipped.
$(VENV)/.kerberos: | $(VENV)/.dev tools
	@$(PIP_INSTALL) --editable '.[kerberos]' >/dev/null 2>&1 || echo "not installed: gssapi; its tests will be skipped"
	@touch $@

install:         ## what `make test` needs, without running it: Python's packages and Debian's side by side
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.kerberos
	@$(BIN)/python tests/lanes prepare

test: install    ## install what the tests need and run them: workers side by side, files with failed tests once more alone
	@$(BIN)/python tests/lanes run $(ARGS)

test-slowest: $(VENV)/.dev  ## where the time of the last run went: folders and slowest tests
	@$(BIN)/python tests/lanes slowest

test-apache: install  ## the client tests on Apache Kafka as well (needs Java and Maven)
	BARNABAS_APACHE=1 $(BIN)/python -m pytest -q tests/clients tests/cli tests/client tests/spark tests/sql/together/test_quickstart.py $(ARGS)

test-long: install  ## everything, with what takes minutes: pipelines in trouble and under kill -9, Spark clusters, rolling replacement, more seeds
	@$(BIN)/python tests/lanes run --long --kills=5 --soak-seconds=10 $(ARGS)

soak: $(VENV)/.dev  ## SECONDS=1800 of clients at work beside connections that come and go, on one node and on three: build/soak.txt, build/soak-3.txt
	$(BIN)/python -m pytest -q --long -n 2 tests/soak --soak-seconds $(or $(SECONDS),300) $(ARGS)

soak-kills: $(VENV)/.dev  ## the long versions: many kill -9, a million hostile frames, minutes of retention and compaction
	$(BIN)/python -m pytest -q --long tests/crash tests/hostile tests/spark/test_killed.py tests/pipeline/test_kills.py --kills 50 --frames 1000000 --soak-seconds 300 --timeout 3600 $(ARGS)

mutate: $(VENV)/.dev  ## plant bugs in the core, one at a time, and show those that no quick test notices (MODULES=, parts of names)
	$(BIN)/python tests/mutations $(MODULES)

simulate: $(VENV)/.dev  ## SEEDS=N histories of each kind on simulated nodes; SEED=n one of them again (HISTORY=records|groups|cluster|..., JOBS=)
	$(BIN)/python -m barnabas.simulation --history $(or $(HISTORY),all) $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100) --first $(or $(FIRST),0) --jobs $(or $(JOBS),1))

lint: $(VENV)/.dev  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## compare with Apache Kafka on this machine (needs Java and Maven), write docs/benchmarks.md
	$(BIN)/python -m bench $(ARGS)

bench-quick: $(VENV)/.dev  ## the same in a few minutes
	$(BIN)/python -m bench --quick $(ARGS)

bench-stalls: $(VENV)/.dev  ## how long one producer waits while somebody else asks the broker for much at once
	$(BIN)/python -m bench.stalls $(ARGS)

bench-cluster: $(VENV)/.dev  ## three nodes against three of Apache Kafka, write docs/benchmarks-cluster.md
	$(BIN)/python -m bench.cluster $(ARGS)

bench-spark: $(VENV)/.dev  ## our Spark source and sink against Spark's own connector, write docs/benchmarks-spark.md
	$(BIN)/python -m bench.spark $(ARGS)

bench-connect: $(VENV)/.dev  ## workers of Connect against Apache's, write docs/benchmarks-connect.md
	$(BIN)/python -m bench.connect $(ARGS)

bench-streams: $(VENV)/.dev  ## streams against Java Kafka Streams, Faust and Quix, write docs/benchmarks-streams.md
	$(BIN)/python -m bench.streams $(ARGS)

bench-pipeline: $(VENV)/.dev  ## topic to all four zones, against a job written by hand; write docs/benchmarks-pipeline.md
	$(BIN)/python -m bench.pipeline $(ARGS)

$(VENV)/.pipeline: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --editable '.[pipeline]'
	@$(COMPILE)
	@touch $@

demo: $(VENV)/.pipeline  ## a broker, a database, a shop and a pipeline over them for a minute; views and a report in demo/
	$(BIN)/python -m barnabas.pipeline.demo $(ARGS)

package: $(VENV)/.dev  ## wheel and sdist into dist/
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build

clean:           ## remove the environment and caches (not data/)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
