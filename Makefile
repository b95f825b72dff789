.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# uv if it is installed (UV= to use pip), with the same packages
UV ?= $(shell command -v uv 2>/dev/null)
NEW_VENV = $(if $(UV),$(UV) venv --quiet --seed --python $(PYTHON),$(PYTHON) -m venv)
INSTALL = $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install)
# https://download.pytorch.org/whl/cpu: torch without CUDA
TORCH_INDEX ?=
export OMP_NUM_THREADS ?= 1
BUDGET ?= 8h
SEED ?= 0
WORKFLOWS := .github/workflows/ci.yml .github/workflows/release.yml docs/ci-example.yml

# experiments whose smoke runs have figures of all kinds, for the contact sheet of make pictures
SHEET = air_quality alpha_divergence asymmetric_wiener banana_hvi cavi_mixture digits_fgsm dp_mixture four_statisticians \
	friend_or_foe_grid funnel_vis gp_prior_draws gplvm_oil local_level mog multitask_toy posterior_concentration retail \
	sarcos_smdgp stopping_rule structural_airline structural_co2 topics_bars topics_text vae_digits vargrad_dvae \
	vargrad_dvae_variance wiener_velocity

.PHONY: help setup run test test-times coverage test-slow test-device test-gpu test-engines smoke mutants bench bench-users bench-peers lint index results results-all outputs tutorials lock docs pictures format types clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# torch comes first: a plain install would take the newest build and its CUDA packages.  All other packages are checked against
# the hashes in requirements.lock.
.venv/.ready: pyproject.toml requirements.lock
	@echo 'Setting up .venv: 5 to 15 minutes and 3 GB of disk (more where torch brings CUDA), once.'
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(NEW_VENV) .venv
	$(if $(UV),,$(INSTALL) --quiet --upgrade pip)
	$(INSTALL) torch==2.13.0 $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	@echo 'Installing the other packages: some minutes.'
	$(INSTALL) --quiet --no-deps --require-hashes -r requirements.lock
	PYTHONWARNINGS='ignore:Editable installation' $(INSTALL) --quiet --no-deps --no-build-isolation -e .
	touch .venv/.ready

# Without hashes, because pip would otherwise require a hash of every package.
.venv/constraints.txt: requirements.lock
	grep -oE '^[a-z0-9.-]+==[^ ;]+' requirements.lock > $@

setup: .venv/.ready ## create the virtual environment

run: setup ## train the main example, a multi-task deep GP on SARCOS (minutes)
	$(BIN)/runner +experiment=sarcos_mdgp

test: setup ## the fast tests (minutes)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow and not device"

test-times: setup ## the fast tests, with the twenty slowest
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow and not device" --durations=20

coverage: setup ## the fast tests with coverage: build/coverage.xml and a summary by file
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow and not device" --cov --cov-report=term:skip-covered --cov-report=xml:build/coverage.xml

test-slow: setup ## the statistical and end-to-end tests (an hour)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "slow and not engines and not device"
	$(BIN)/python -m pytest -n 2 -m "slow and device" tests/device

test-device: setup ## a run of every family on a stand-in for a GPU, compared with the CPU (minutes); skipped without a C++ compiler
	$(BIN)/python -m pytest -n 2 -m "device and not slow" -rs tests/device

test-gpu: setup ## small runs of every family on a GPU, compared with the CPU; skipped without a GPU
	$(BIN)/python -m pytest -m gpu -rs tests/gpu

test-engines: setup ## studies on Slurm and Ray on this machine (15 minutes); skipped if they are absent
	$(BIN)/python -m pytest -m engines -rs tests/engines

smoke: setup ## every experiment in seconds, on built-in data
	$(BIN)/python -m pytest -n 2 tests/experiments

mutants: setup ## insert scientific errors into a copy of the tree and run the tests: those of test-slow, and a generated sample (SEED=0)
	$(BIN)/python -m scripts.mutants --generated 150 --seed $(SEED)

bench: setup ## speed as ratios against other packages
	$(BIN)/python -m scripts.bench

bench-users: setup ## CPU time from the command to the answer, against scripts that users would write
	$(BIN)/python -m scripts.bench answers

# torchattacks and particles pin older versions although newer ones work, hence --no-deps; GPflux needs a separate
# environment.
bench-peers: setup .venv/constraints.txt .venv-peers/.ready ## install the packages that make bench compares with (GPflux in .venv-peers, 2 GB)
	$(INSTALL) --quiet -c .venv/constraints.txt -e '.[bench]'
	$(INSTALL) --quiet -c .venv/constraints.txt --no-deps torchattacks particles

.venv-peers/.ready: scripts/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -r scripts/peers/requirements.txt
	touch .venv-peers/.ready

lint: setup ## ruff (lint and format), type hints, size and wording; workflows if zizmor and check-jsonschema are installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m scripts.house
	! command -v zizmor >/dev/null || zizmor --offline --quiet $(WORKFLOWS)
	! command -v check-jsonschema >/dev/null || check-jsonschema --quiet --builtin-schema vendor.github-workflows $(WORKFLOWS)
	! command -v check-jsonschema >/dev/null || check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

index: setup ## update components/index.json, which the command line reads
	$(BIN)/python -m scripts.index

results: setup ## write the pages of docs/results from the kept scores (check: python -m scripts.results --check)
	$(BIN)/python -m scripts.results
	$(BIN)/python -m scripts.readme_table

results-all: setup ## rerun the studies with kept scores within BUDGET=8h, the most important and cheapest first
	$(BIN)/python -m scripts.results_all --budget $(BUDGET)

outputs: setup ## run the commands of README and docs/methods, and update their outputs and figures
	$(BIN)/python -m scripts.outputs

tutorials: setup ## run the commands of docs/tutorials, and update their outputs and pictures
	$(BIN)/python -m scripts.outputs --tutorials

lock: setup ## write requirements.lock from this environment, with hashes, after its tests have passed
	$(BIN)/python -m uv --version 2>/dev/null || $(INSTALL) --quiet uv
	$(BIN)/python -m scripts.lock

docs: setup .venv/constraints.txt ## build the documents as an offline site in build/site; dead links are errors
	$(BIN)/python -c 'import zensical, mkdocstrings, mathjax' 2>/dev/null || $(INSTALL) --quiet -c .venv/constraints.txt -e '.[docs]'
	$(BIN)/python -m scripts.site.pages build/pages
	$(BIN)/python -m zensical build --strict --clean
	rm build/site/404.html # its links need the address of the server
	@echo 'written  build/site/index.html: open it in a browser'

pictures: setup ## pictures of documents: a terminal (rich), a report (if Chromium is installed), all kinds of figures (10 minutes)
	for name in $(SHEET); do $(BIN)/runner +experiment=$$name smoke=true tracking=false output_dir=build/pictures || exit 1; done
	$(BIN)/python -m scripts.pictures

format: setup ## format the code and apply the fixes of ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches; the records in outputs/ stay
	rm -rf .pytest_cache .ruff_cache .mypy_cache .cache build dist *.egg-info
	find . -name __pycache__ -not -path './.venv/*' -not -path './.venv-peers/*' -exec rm -rf {} +
