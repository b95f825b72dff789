.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1

.PHONY: help setup run test coverage test-slow test-gpu smoke mutants bench bench-peers lint contracts results tutorials lock docs pictures format types clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# torch first: a plain install would take the newest build and its CUDA packages.
.venv/.ready: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c requirements.lock torch==2.13.0
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[dev]'
	touch .venv/.ready

setup: .venv/.ready ## make the virtual environment with everything in it

run: setup ## train the main job: multi-task deep GP on SARCOS (minutes)
	$(BIN)/runner +experiment=sarcos_mdgp

test: setup ## the fast tests (minutes)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"

coverage: setup ## the fast tests with coverage: build/coverage.xml and a summary by file
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow" --cov --cov-report=term:skip-covered --cov-report=xml:build/coverage.xml

test-slow: setup ## the statistical and end-to-end tests too (an hour)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m slow

test-gpu: setup ## small runs of every family on a GPU, compared with the CPU; without a GPU it says so
	$(BIN)/python -m pytest -m gpu -rs tests/gpu

smoke: setup ## every experiment in seconds, on built-in data
	$(BIN)/python -m pytest -n 2 tests/experiments

mutants: setup ## wrong science in a copy of the tree: do the tests notice? (part of test-slow)
	$(BIN)/python -m scripts.mutants

bench: setup ## speed against named peers, as ratios
	$(BIN)/python -m scripts.bench

# torchattacks and particles pin older versions of packages that they run with, hence --no-deps; GPflux needs an environment
# of its own.
bench-peers: setup .venv-peers/.ready ## install the peers that make bench compares with (GPflux in .venv-peers, 2 GB)
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[bench]'
	$(BIN)/python -m pip install --quiet -c requirements.lock --no-deps torchattacks particles

.venv-peers/.ready: scripts/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -r scripts/peers/requirements.txt
	touch .venv-peers/.ready

lint: setup ## ruff (lint and format), type hints, plainness
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m scripts.house

contracts: setup ## write docs/contracts.md from the protocols
	$(BIN)/python -m scripts.contracts_page

results: setup ## write the pages of docs/results from the scores kept there (--check: python -m scripts.results --check)
	$(BIN)/python -m scripts.results

tutorials: setup ## run the commands of docs/tutorials and write their outputs and pictures there
	$(BIN)/python -m scripts.tutorial_outputs

lock: setup ## write requirements.lock: the versions of this environment, once its tests have passed
	$(BIN)/python -m scripts.lock

docs: setup ## the documents as a site in build/site, without network
	$(BIN)/python -c 'import mkdocs, material' 2>/dev/null || $(BIN)/python -m pip install --quiet -c requirements.lock -e '.[docs]'
	$(BIN)/python -m scripts.docs_site

pictures: setup ## the pictures of README: a terminal (rich), a report (Chromium, where there is one)
	$(BIN)/python -m scripts.pictures

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches; the records in outputs/ stay
	rm -rf .pytest_cache .ruff_cache .mypy_cache build *.egg-info
	find . -name __pycache__ -not -path './.venv/*' -not -path './.venv-peers/*' -exec rm -rf {} +
