# Everything runs from .venv, whatever virtual environment or PYTHONPATH the caller has active.
# make install PYTHON=python3.12 EXTRAS=postgres,models   another interpreter, other extras

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
EXTRAS ?= postgres
HOST ?= 127.0.0.1
PORT ?= 8501
BUILDS ?= .compilewatch/builds
EVIDENCE := $(or $(EVIDENCE),.compilewatch/gpu-evidence-$(shell date -u +%Y%m%d-%H%M%S))
PIP_AUDIT := 2.10.1
MUTMUT := 3.8.1
PYTEST_ARGS ?=
MUTANTS_ARGS ?=

unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv
BIN := $(VENV)/bin
AUDITOR := $(VENV)/audit/bin/pip-audit
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt

HAS_FINISHED_RUN := import json, sys; sys.exit(all(row["status"] != "finished" for row in json.load(sys.stdin)["rows"]))

# The stamps carry the checkout's path and the extras: console scripts of a moved checkout point to the old
# folder, and other extras are another installation.
STAMP_KEY := $(shell printf '%s' '$(CURDIR) $(EXTRAS)' | cksum | cut -d' ' -f1)
INSTALLED := $(VENV)/.installed-$(STAMP_KEY)
INSTALLED_DEV := $(VENV)/.installed-dev-$(STAMP_KEY)

.PHONY: help install up demo serve dev browser test test-slow test-gpu gpu-evidence test-builds faults test-slurm fuzz numbers mutants audit lint fix bench faithful docs screenshots week look release-check clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## create .venv with the console script .venv/bin/compilewatch, everything pinned

# A failed trial (exit 1) is a result to look at; anything worse stops here, with its sentence.
up: install ## install, measure the smoke suite if nothing was measured yet, serve the dashboard
	@if ! $(BIN)/compilewatch list runs --json 2>/dev/null | $(BIN)/python -c '$(HAS_FINISHED_RUN)' 2>/dev/null; then \
	    echo "No finished run is stored yet: measuring the smoke suite, about four minutes on two cores"; \
	    $(BIN)/compilewatch run --suite smoke || { code=$$?; [ $$code = 1 ] || exit $$code; }; \
	fi
	@exec $(BIN)/compilewatch dashboard --host $(HOST) --port $(PORT)

demo: install ## serve recorded histories: six torch releases on a CPU, two on an H100; nothing is measured
	@exec $(BIN)/compilewatch demo --host $(HOST) --port $(PORT)

serve: install ## serve the dashboard on http://127.0.0.1:8501 (HOST=, PORT=)
	@exec $(BIN)/compilewatch dashboard --host $(HOST) --port $(PORT)

dev: $(INSTALLED_DEV) ## install, plus what tests and checks need

# Whoever names an interpreter means it: an environment of another one is not taken in its place.
OWN_PYTHON := import sys; print("Python %d.%d.%d (%s)" % (*sys.version_info[:3], sys.base_prefix))
.PHONY: same-python
same-python:
ifneq ($(filter command environment,$(firstword $(origin PYTHON))),)
	@[ ! -e $(BIN)/python ] || { command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; $(VENV) has $$($(BIN)/python -c '$(OWN_PYTHON)'): leave PYTHON out to keep it" >&2; exit 2; }; \
	    there=$$($(BIN)/python -c '$(OWN_PYTHON)'); named=$$($(PYTHON) -c '$(OWN_PYTHON)'); \
	    [ "$$there" = "$$named" ] || { echo "$(VENV) has $$there, and $(PYTHON) is $$named; install anew: rm -rf $(VENV) && make install PYTHON=$(PYTHON)" >&2; exit 2; }; }
else
	@:
endif

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; install Python 3.11, 3.12 or 3.13, or name one: make install PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), and compilewatch needs 3.11, 3.12 or 3.13: newer ones lack a wheel of ruptures; name another: make install PYTHON=python3.13" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot create virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# setuptools comes first, pinned like the rest, and builds the editable install: an isolated build would fetch
# whatever setuptools is newest that day.
$(INSTALLED): pyproject.toml constraints.txt | same-python $(BIN)/python
	@echo "Installing compilewatch[$(EXTRAS)] into $(VENV); the first time this takes a few minutes"
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --no-build-isolation --editable '.[$(EXTRAS)]'
	@touch $@
	@echo "Installed: $(BIN)/compilewatch"

$(INSTALLED_DEV): $(INSTALLED)
	@echo "Installing compilewatch[dev,notify,trace,fleet,auth,$(EXTRAS)] into $(VENV)"
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev,notify,trace,fleet,auth,$(EXTRAS)]'
	@touch $@

# Without Chromium the browser tests are skipped, and say so; nothing else needs it.
browser: ## install Debian's Chromium for the browser tests, where root and apt-get are at hand
	@if command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null; then \
	    :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Debian's Chromium for the browser tests"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-liberation; } >/dev/null \
	        || echo "Chromium could not be installed; the browser tests will be skipped. By hand: apt-get install chromium-headless-shell" >&2; \
	else \
	    echo "Chromium is not installed; the browser tests will be skipped. By hand: sudo apt-get install chromium-headless-shell" >&2; \
	fi

# Targets of their own run these, and each of three processes would import them.
NOT_COLLECTED := --ignore=tests/qa/benchmarks --ignore=tests/qa/mutants

# What a caller's PYTHONDONTWRITEBYTECODE would have compiled anew by every command that a test starts.
test: export PYTHONDONTWRITEBYTECODE :=
test: dev browser ## all checks: ruff, mypy, unit tests, real subprocesses, browser
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	@$(MAKE) --jobs=2 types suite

.PHONY: types suite
types:
	$(BIN)/python -m mypy

suite:
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(NOT_COLLECTED) $(PYTEST_ARGS)

test-slow: dev ## the exhaustive tests, minutes long
	$(BIN)/python -m pytest -m 'slow and not gpu' $(PYTEST_ARGS)

test-gpu: dev ## the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu $(PYTEST_ARGS)

# Every step runs, whatever became of the one before. A bare machine has no index: EVIDENCE_PYTHON= names an
# interpreter there that has torch, pytest and what compilewatch needs, and nothing is installed.
gpu-evidence: ## on a GPU: two models, tests and a validation in one lease of 15 minutes (SECONDS= a call), one tar.gz at the end
	@[ -n "$(EVIDENCE_PYTHON)" ] || $(MAKE) dev EXTRAS=$(EXTRAS),models
	@$(or $(EVIDENCE_PYTHON),$(BIN)/python) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { echo "torch sees no GPU here, and the evidence is about one: see $(BIN)/compilewatch doctor" >&2; exit 2; }
	@$(or $(EVIDENCE_PYTHON),$(BIN)/python) -m tests.gpu.evidence $(EVIDENCE) $(if $(SECONDS),--seconds $(SECONDS))

test-builds: dev ## what each installed release of torch gives (BUILDS=directory of environments)
	COMPILEWATCH_TEST_BUILDS=$(BUILDS) $(BIN)/python -m pytest tests/runner/worker/test_torch_releases.py $(PYTEST_ARGS)

faults: dev ## inject a thousand faults, kill a fleet's processes for minutes, print the table; about an hour
	$(BIN)/python -m pytest -m 'faults or slow' tests/qa/faults $(PYTEST_ARGS)

# Without Slurm the test is skipped, and says so.
test-slurm: dev ## two hundred trials on a real Slurm of two nodes, whose jobs are pre-empted and killed
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v slurmctld >/dev/null; then \
	    echo "Installing Debian's Slurm"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge; } >/dev/null \
	        || echo "Slurm could not be installed; the test will be skipped." >&2; \
	fi
	$(BIN)/python -m pytest -s -m slurm tests/qa/faults/test_slurm.py $(PYTEST_ARGS)

fuzz: dev ## bend configurations, records, links, requests, sockets, states and what workers send, up to 5,000 times each; every property 500 times
	COMPILEWATCH_HYPOTHESIS_PROFILE=fuzz COMPILEWATCH_FUZZ_EXAMPLES=5000 $(BIN)/python -m pytest \
	    --hypothesis-show-statistics --timeout 3600 tests/runner/process/test_fuzz.py \
	    tests/dashboard/links/test_links.py tests/dashboard/api/test_fuzz_requests.py tests/db/store/test_states.py $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m slow --timeout 3600 tests/db/interchange/test_every_field.py \
	    tests/db/interchange/test_reading_process.py $(PYTEST_ARGS)
	COMPILEWATCH_HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m 'hypothesis and not gpu and not slow' \
	    --numprocesses 2 --dist loadfile --timeout 3600 $(PYTEST_ARGS)

numbers: dev ## whether every door tells the same numbers, and each page's add up, over 500 random histories; hours
	$(BIN)/python -m pytest -m slow --numprocesses 2 --dist worksteal tests/qa/numbers $(PYTEST_ARGS)

mutants: dev ## change db/metrics and db/judge in every small way, and count which changes the tests notice; hours
	@[ -e build/mutmut/mutmut ] || $(BIN)/python -m pip install --quiet --constraint constraints.txt \
	    --target build/mutmut mutmut==$(MUTMUT)
	$(BIN)/python -m tests.qa.mutants.run $(MUTANTS_ARGS)

audit: $(AUDITOR) ## look up known weaknesses of every pinned package; needs the network
	@rm -f $(VENV)/audit.txt; code=0; \
	$(AUDITOR) --strict --no-deps --disable-pip --progress-spinner off --requirement constraints.txt \
	    --output $(VENV)/audit.txt 2>$(VENV)/audit.log || code=$$?; \
	if [ $$code = 0 ]; then \
	    echo "No pinned package has a known weakness."; \
	elif [ -s $(VENV)/audit.txt ]; then \
	    cat $(VENV)/audit.txt; exit 1; \
	else \
	    why=$$(sed -n 's/^ERROR:[a-z_.]*: *//p' $(VENV)/audit.log | tail -n 1); \
	    echo "The pinned packages were not looked up ($${why:-see $(VENV)/audit.log}): try again where the package index can be reached." >&2; \
	    exit 2; \
	fi

$(VENV)/audit/bin/pip-audit:
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/pip install --quiet --quiet pip-audit==$(PIP_AUDIT) || { echo "pip-audit could not be installed: try again where the package index can be reached." >&2; exit 2; }

lint: dev ## ruff and mypy
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

fix: dev ## let ruff mend and format what it can
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: dev ## print the measured ratios: overhead, agreement with torch's own timer, page speed
	$(BIN)/python -m pytest -m benchmark -s $(PYTEST_ARGS)

faithful: dev ## a dozen models by a plain script and by a trial, in turns: first calls, latency, memory, with gates
	$(BIN)/python -m tests.qa.benchmarks.plain_script $(MODELS)

docs: dev ## write the reference pages from the code, build the site into build/docs, check links and commands
	$(BIN)/python -m docs.reference.generate build/pages
	$(BIN)/zensical build --strict --config-file .zensical.toml
	$(BIN)/python -m pytest tests/house/test_docs.py

screenshots: dev browser ## take the pictures in docs/images again, from the recorded history
	$(BIN)/python -m docs.images.generate

week: dev ## type the blocks of README and docs in a fresh clone, from install to a red pull request, and time them
	$(BIN)/python -m pytest -m 'slow and not gpu' --numprocesses 0 -s tests/house/test_week.py $(PYTEST_ARGS)

look: dev browser ## photograph every page, wide and narrow, light and dark, into build/screens
	$(BIN)/python -m tests.e2e.look

release-check: dev ## build wheel and sdist, install the wheel elsewhere, type every command, serve
	$(BIN)/python -m pytest -m 'slow and not gpu' tests/house/test_release.py $(PYTEST_ARGS)

clean: ## remove .venv and every cache; measured data stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find compilewatch db runner dashboard tests -name __pycache__ -type d -prune -exec rm -rf {} +
