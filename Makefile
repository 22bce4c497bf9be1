# The two commands: `make demo` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cat requirements/dev.txt pyproject.toml | sha256sum | cut -c1-16)
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint test-unit test-apiserver test-e2e test-conformance test-testbed build build-all lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "muster needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== setting up $(VENV) (about half a minute when nothing is cached)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --disable-pip-version-check --progress-bar off --quiet --require-hashes -r requirements/dev.txt
	@$(BIN)/pip install --disable-pip-version-check --progress-bar off --quiet --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.installed-* && touch $@

setup: $(STAMP) ## Make the virtual environment

build: setup ## Build the programs of the testbed's usual parts (a quarter of an hour when nothing is cached)
	@$(BIN)/python -m hack.testbed build

build-all: setup ## Build the programs of all its parts, which `make test` needs
	@$(BIN)/python -m hack.testbed build --with volcano,volcano-webhooks,kuberay,training,mpi,jobset,trainer

demo: setup ## Run the main job on a real local control plane; KEEP=1 leaves it running
	@$(BIN)/python -m hack.demo $(if $(KEEP),--keep)

test: lint build-all ## Lint, then every test
	@$(BIN)/pytest $(PYTEST_ARGS)

lint: setup ## ruff, mypy, import-linter
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test-unit: setup ## Tests without a cluster, in seconds
	@$(BIN)/pytest tests/unit $(PYTEST_ARGS)

test-apiserver: build ## Tests on a real kube-apiserver
	@$(BIN)/pytest tests/apiserver $(PYTEST_ARGS)

test-e2e: build ## Tests on the whole real control plane
	@$(BIN)/pytest tests/e2e $(PYTEST_ARGS)

test-conformance: build-all ## muster beside the operators' own gang flags
	@$(BIN)/pytest tests/conformance $(PYTEST_ARGS)

test-testbed: build-all ## Tests of the testbed itself
	@$(BIN)/pytest tests/testbed $(PYTEST_ARGS)

lock: setup ## Write the locked requirements anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --output-file requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --group dev --output-file requirements/dev.txt

clean: ## Remove what was made in the checkout
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
