# The two commands: `make demo` and `make test`. Both set up what they need. `make check` is what one runs all day.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cat requirements/dev.txt pyproject.toml | sha256sum | cut -c1-16)
PYTEST_ARGS ?=
COMMA := ,
# Python keeps bytecode even where the environment forbids it: each of the tests' processes would compile every module.
unexport PYTHONDONTWRITEBYTECODE
# MUSTER_WITHOUT_NODE=1 leaves out what needs a real node (CONTRIBUTING.md); in CI that is an error.
NODE := $(if $(MUSTER_WITHOUT_NODE),,$(COMMA)node)

.DEFAULT_GOAL := help
.PHONY: help setup image cli-wheel demo check test test-all lint hooks test-unit test-image test-apiserver test-faults test-e2e test-conformance test-node test-testbed test-versions build build-all build-backends login push publish verify keep-release fuzz mutate audit-dependencies docs lock clean clean-cache

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "muster needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== setting up $(VENV): about a minute of processor time, more on a busy machine or a slow network"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m hack.pip requirements/dev.txt
	@$(BIN)/pip install --disable-pip-version-check --progress-bar off --quiet --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.installed-* && touch $@

setup: $(STAMP) ## Make the virtual environment

build: setup ## Build the programs of the testbed's usual parts (minutes when nothing is cached; it prints how many)
	@$(BIN)/python -m hack.testbed build

build-all: setup ## Build the programs of all its parts, which `make test` needs
	@$(BIN)/python -m hack.testbed build --with volcano,volcano-webhooks,kuberay,training,mpi,jobset,trainer,tools$(NODE)

build-backends: setup ## Build the schedulers and admitters beside Volcano and muster's ledger, which `make test-all` needs
	@$(BIN)/python -m hack.testbed build --with coscheduling,kueue,release
	@$(BIN)/python -m hack.testbed build --with '' --kubernetes 1.37

image: setup ## Build the image into dist/image, without Docker or root (Debian 12); NAME=REPOSITORY names it
	@$(BIN)/python -m hack.image $(if $(NAME),--name $(NAME))

push: setup ## Push the image that `make image` has made to REGISTRY
	@test -n "$(REGISTRY)" || { echo "say where: make push REGISTRY=HOST/FOLDER" >&2; exit 2; }
	@$(BIN)/python -m hack.release push $(REGISTRY)

# UNFINISHED=1 publishes a checkout with changes, ARCHITECTURES=amd64 for fewer machines; docs/releasing.md.
publish: setup ## Push image, chart, SBOMs and provenance to REGISTRY, signed with KEY, and verify them there
	@test -n "$(REGISTRY)" -a -n "$(KEY)" || { echo "say where and with which key: make publish REGISTRY=HOST/FOLDER KEY=cosign.key" >&2; exit 2; }
	@$(BIN)/python -m hack.release publish $(REGISTRY) --key $(KEY) $(if $(ARCHITECTURES),--architectures $(ARCHITECTURES)) $(if $(BUILDER),--builder $(BUILDER)) $(if $(OUTPUT),--output $(OUTPUT)) $(if $(VERSION),--version $(VERSION)) $(if $(UNFINISHED),--unfinished)

verify: setup ## Verify the release in REGISTRY with the public key KEY; VERSION=0.1.0 for another one
	@test -n "$(REGISTRY)" -a -n "$(KEY)" || { echo "say where and with which key: make verify REGISTRY=HOST/FOLDER KEY=cosign.pub" >&2; exit 2; }
	@$(BIN)/python -m hack.release verify $(REGISTRY) --key $(KEY) $(if $(VERSION),--version $(VERSION))

login: setup ## Log in to REGISTRY with REGISTRY_USER and REGISTRY_PASSWORD from the environment
	@test -n "$(REGISTRY)" || { echo "say where: make login REGISTRY=HOST/FOLDER" >&2; exit 2; }
	@$(BIN)/python -m hack.release login $(REGISTRY)

keep-release: setup ## Keep this version's chart and wheel in tests/releases, for the tests of upgrades from it
	@$(BIN)/python -m hack.release keep

cli-wheel: setup ## Build a wheel of the command line alone into dist/
	@cd hack/cli && ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist

# CONTEXT=NAME runs it on the cluster of a kubeconfig's context, with KubeRay, muster and a gang scheduler there.
demo: setup ## Run the main job on a real local control plane; KEEP=1 leaves it running, SCHEDULER=kubernetes needs no Volcano
	@$(BIN)/python -m hack.demo $(if $(KEEP),--keep) $(if $(SCHEDULER),--scheduler $(SCHEDULER)) $(if $(CONTEXT),--context $(CONTEXT))

check: lint ## Lint, units, the chart and the documents: no root, no control plane
	@echo "== units, chart, documents"
	@$(BIN)/python -m hack.check quick $(PYTEST_ARGS)

test: check build-all image docs ## check, then every other test but the long ones; MUSTER_WITHOUT_NODE=1 leaves the real node out
	@$(BIN)/python -m hack.check test $(PYTEST_ARGS)

test-all: export MUSTER_EXAMPLES := all
test-all: check build-all build-backends image docs ## As test, with the long ones
	@$(BIN)/python -m hack.check all $(PYTEST_ARGS)

lint: setup ## ruff, mypy, import-linter, helm lint
	@echo "== lint"
	@$(BIN)/python -m hack.lint

hooks: setup ## Have git run lint on the files of each commit (pre-commit)
	@$(BIN)/pre-commit install

test-unit: setup ## Tests without a cluster, in seconds
	@$(BIN)/pytest tests/unit $(PYTEST_ARGS)

test-image: image ## Tests of the image; needs root, to run it
	@$(BIN)/pytest tests/image $(PYTEST_ARGS)

test-apiserver: build ## Tests on a real kube-apiserver
	@$(BIN)/pytest tests/apiserver $(PYTEST_ARGS)

test-faults: build ## muster's client on a real kube-apiserver that fails, or behind a network that does
	@$(BIN)/pytest tests/faults $(PYTEST_ARGS)

test-e2e: build ## Tests on the whole real control plane
	@$(BIN)/pytest tests/e2e $(PYTEST_ARGS)

test-conformance: build-all ## muster beside the operators' own gang flags
	@$(BIN)/pytest tests/conformance $(PYTEST_ARGS)

test-node: setup ## Tests on a real node: muster's pods run by a kubelet (root only)
	@$(BIN)/python -m hack.testbed build --with volcano,kuberay,node
	@$(BIN)/pytest tests/node $(PYTEST_ARGS)

test-testbed: build-all build-backends ## Tests of the testbed itself
	@$(BIN)/pytest tests/testbed $(PYTEST_ARGS)

test-versions: setup ## The chart, policies, webhooks and main job on other versions; ONLY="kubernetes=1.31 helm=3"; hours
	@$(BIN)/python -m hack.versions $(ONLY)

fuzz: setup ## Ask the webhook anything for ten minutes (SECONDS=60: for one), and show what was reached of its rules
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),600)

# --strict: a package that the list does not know is an error, since nothing is known about it.
audit-dependencies: setup ## Look the locked requirements up among known vulnerabilities: PyPI's list, or SERVICE=osv
	@test -x $(VENV)/audit/bin/python || $(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m hack.pip requirements/audit.txt
	@$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off --vulnerability-service $(or $(SERVICE),pypi) -r requirements/runtime.txt -r requirements/dev.txt

mutate: setup ## Change 400 statements of the rules, one at a time, and see how many the unit tests notice
	@test -x $(VENV)/mutate/bin/python || $(PYTHON) -m venv $(VENV)/mutate
	@$(VENV)/mutate/bin/python -m hack.pip requirements/mutate.txt
	@$(BIN)/python -m hack.mutate $(ARGS)

docs: setup ## Build the site of the documents into dist/site; a warning or a dead link is an error
	@test -x $(VENV)/site/bin/python || $(PYTHON) -m venv $(VENV)/site
	@$(VENV)/site/bin/python -m hack.pip requirements/site.txt
	@$(BIN)/python -m hack.site --program $(VENV)/site/bin/sphinx-build

lock: setup ## Write the locked requirements anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --output-file requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --group dev --output-file requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 --group audit --output-file requirements/audit.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 --group mutate --output-file requirements/mutate.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 --group site --output-file requirements/site.txt

clean-cache: setup ## Remove programs and layers below ~/.cache/muster; GO=1: Go's own caches, too, which other projects share
	@$(BIN)/python -m hack.testbed clean $(if $(GO),--go)

clean: ## Remove what was made in the checkout
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
