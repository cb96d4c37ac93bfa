# Everything that a developer or a machine runs. `make` alone says what there is.

SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

unexport PYTHONDONTWRITEBYTECODE # with it, every start compiles every module

.DEFAULT_GOAL := help
SEEDS ?= 0..1999

.PHONY: help setup demo test quick loop soak screens check plans stores lock clean

help: ## Show this list
	@printf '\033[1mMidstream\033[0m changes the plan of a running Spark streaming query, midstream.\n\n'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  \033[36mmake %-8s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything into .venv, run nothing
	@echo 'ready: $(BIN)/midstream --help'

demo: $(READY) ## Run a small job and change its plan while it runs
	$(BIN)/midstream demo

test: $(READY) ## Run every test but the browser's and the demo's
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		-m "not services and not browser and not demo"
	$(BIN)/pytest -m services

loop: $(READY) ## Run the tests of the whole loop alone, on the real Airflow and MLflow, and the demo's
	$(BIN)/pytest -m "services or demo"

soak: $(READY) ## Random jobs, schedules, crashes and planted bugs for hours: before a release
	$(BIN)/midstream bench simulate --seeds $(SEEDS)
	$(BIN)/midstream bench simulate --seeds $(SEEDS) --migrations
	$(BIN)/midstream bench differential --seeds $(SEEDS)
	$(BIN)/midstream bench mutation --seeds 100
	$(BIN)/midstream bench crash --runs 50

screens: $(READY) ## Use the pages as on-call does, in Debian's Chromium, and keep docs/screens
	MIDSTREAM_SCREENS=docs/screens $(BIN)/pytest tests/dags/test_browser.py --basetemp=/tmp/midstream

check: $(READY) ## Lint, types and import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: $(READY) ## Run the tests that need no Spark
	$(BIN)/pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		-m "not spark and not services and not browser and not demo"

plans: $(READY) ## Write the golden plans of tests/plans again
	$(BIN)/python -m tests.plans

stores: $(READY) ## Write the golden storage of this version's layout again, in tests/stores
	$(BIN)/python -m tests.stores

lock: $(READY) ## Resolve pyproject.toml into infra/requirements.txt again
	$(BIN)/uv pip compile pyproject.toml --group dev --quiet --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command 'make lock' --output-file infra/requirements.txt $(FLAGS)

clean: ## Remove the environment and everything that tools and runs left
	rm -rf $(VENV) .midstream artifacts build dist spark-warehouse mlruns \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Up to date as long as the lock, the project file and set-up itself are older.
$(READY): infra/requirements.txt pyproject.toml infra/setup.sh
	@PYTHON='$(PYTHON)' VENV='$(VENV)' infra/setup.sh
	@touch $@
