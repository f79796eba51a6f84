# Needs make and Python 3.11 or later; everything else comes into .venv. `make help` lists the targets.

PYTHON ?= python3
PORT ?= 8000
# An external PostgreSQL 15 or later for the tests, as a role that may create databases and roles:
#   make test DATABASE_URL=postgresql://user:password@host:5432/postgres
# Unset: the tests start an embedded one. A DATABASE_URL of the environment, meant for something else, does not count.
DATABASE_URL =
# Twice as many as the two processors they were tried on: half of their time the tests wait.
PYTEST_ARGS ?= -n 4
# A program that starts a Citus cluster for `make test-citus`.
CLUSTER =
# How often `make test-patroni` kills the leader.
KILLS ?= 10

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CREATED := .venv/.created
INSTALLED := .venv/.installed
INSTALLED_DEV := .venv/.installed-dev

# Where whoever calls this wants no bytecode, the hundreds of processes of the tests would each compile all they import.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install install-dev demo test test-slow test-long test-typescript typescript-types pytest test-bounds test-pgbouncer test-patroni test-citus mutants check format lock docs dist image bench bench-citus performance-doc clean

help:  ## List the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED)  ## Build .venv with everything the service needs
	@$(call of_this_commit,largesse,.)

install-dev: $(INSTALLED_DEV)  ## The same, and the tools of test, check and bench
	@$(call of_this_commit,largesse,.)
	@$(call of_this_commit,largesse-client,sdk/python)
	@$(call of_this_commit,largesse-conformance,sdk/conformance)

# Installs a project of this checkout anew where another commit of it is installed: its version is that of the commit.
of_this_commit = $(BIN)/python sdk/python/release/largesse_build.py $(1) $(2) || \
	$(PIP) install --quiet --no-deps --no-build-isolation --editable $(2)

# A stamp, not .venv/bin/python: that is there before an environment is whole.
$(CREATED):
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: name a Python 3.11 or later with PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $(PYTHON) is $$($(PYTHON) --version 2>&1), Largesse needs 3.11 or later: name one with PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "make: $(PYTHON) lacks the venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@touch $@

# The stamps change when a lock or pyproject.toml does, so that a repeat is instant.
$(INSTALLED): requirements.lock pyproject.toml | $(CREATED)
	$(PIP) install --quiet --require-hashes --only-binary :all: -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(INSTALLED_DEV): requirements-dev.lock $(INSTALLED) sdk/python/pyproject.toml sdk/conformance/pyproject.toml
	$(PIP) install --quiet --require-hashes --only-binary :all: -r requirements-dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable sdk/python --editable sdk/conformance
	@touch $@

demo: install  ## Start the service with a demo world on PORT (8000)
	exec $(BIN)/largesse demo --port $(PORT)

test: check  ## What every change must pass: check, then all tests but the slow ones
	@$(MAKE) --no-print-directory pytest PYTEST_ARGS='$(PYTEST_ARGS) -m "not slow"'

test-slow: install-dev  ## The slow tests alone, which CI runs after make test
	@$(MAKE) --no-print-directory pytest PYTEST_ARGS='$(PYTEST_ARGS) -m "slow and not long"'

test-long: install-dev  ## The longest tests, for a release: CI leaves them out
	@$(MAKE) --no-print-directory pytest PYTEST_ARGS='-n 2 -m long'

pytest: install-dev  ## All tests; DATABASE_URL= names an external server, PYTEST_ARGS= replaces -n 4
	@$(BIN)/python -m compileall -q -j 2 src sdk/python/src sdk/conformance/src
	@$(BIN)/python -m tools.compile_tests
	LARGESSE_TEST_DATABASE_URL='$(DATABASE_URL)' $(BIN)/pytest $(PYTEST_ARGS)

test-pgbouncer: install-dev  ## The API's tests behind PgBouncer in transaction mode (needs pgbouncer)
	$(BIN)/python tests/pgbouncer.py $(PYTEST_ARGS)

test-patroni: install-dev  ## Orders while Patroni's leader is killed ten times (KILLS=10; needs patroni, etcd-server, postgresql)
	PATRONI_KILLS=$(KILLS) $(BIN)/pytest -s tests/patroni

test-citus: install-dev  ## Tests on a Citus cluster that the program CLUSTER starts (docs/testing.md); PYTEST_ARGS= replaces its suites
	LARGESSE_TEST_CLUSTER='$(CLUSTER)' CITUS_KILLS=$(KILLS) $(BIN)/python -m tests.citus.run $(if $(filter command line,$(origin PYTEST_ARGS)),$(PYTEST_ARGS))

mutants: install-dev  ## Change one small thing of FILES= at a time and see that TESTS= fail (SAMPLE=20, SEED=1)
	$(BIN)/python -m tools.mutate $(FILES) --tests $(TESTS) --sample $(or $(SAMPLE),20) --seed $(or $(SEED),1)

test-client-%: install  ## The Python client's tests on another Python, such as test-client-3.13
	python$* -m venv --clear build/client-$*
	build/client-$*/bin/python -m pip --disable-pip-version-check install --quiet pytest pytest-asyncio pytest-timeout ./sdk/python
	cd sdk/python && ../../build/client-$*/bin/pytest --largesse-command '$(CURDIR)/$(BIN)/largesse'

test-bounds: install-dev  ## Tests on the oldest and the newest releases that pyproject.toml allows (BOUNDS=lowest: on those alone)
	$(BIN)/python tests/bounds.py $(BOUNDS)

check: install-dev  ## Format, lint, types and import rules
	@$(MAKE) --no-print-directory -j 2 check-code check-client

.PHONY: check-code check-client
check-code:
	$(BIN)/mypy

check-client:
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/lint-imports --no-cache
	cd sdk/python && ../../$(BIN)/mypy
	cd sdk/conformance && ../../$(BIN)/mypy

format: install-dev  ## Rewrite the code in the house format
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

# uv resolves for every platform at once; it comes from the package index unpinned, since it only writes the locks.
COMPILE = .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
LOCK = $(COMPILE) pyproject.toml --group build
LOCK_DOCS = $(COMPILE) --group docs

lock: $(CREATED)  ## Bring the locks in line with pyproject.toml (UPGRADE=1: to the newest versions)
	$(BIN)/python -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet uv
	$(LOCK) $(if $(UPGRADE),--upgrade) --output-file requirements.lock
	$(LOCK) $(if $(UPGRADE),--upgrade) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(LOCK_DOCS) $(if $(UPGRADE),--upgrade) --output-file requirements-docs.lock

# Sphinx has an environment of its own: the service and its tests need nothing of it.
docs: .venv/docs/.installed  ## The documentation as one site in build/docs: whatever is doubtful about it ends this
	.venv/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs -d build/doctrees . build/docs
	$(BIN)/python -m tools.check_site build/docs

.venv/docs/.installed: requirements-docs.lock | $(CREATED)
	$(BIN)/python -m venv --clear .venv/docs
	.venv/docs/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --only-binary :all: -r requirements-docs.lock
	@touch $@

dist: install-dev  ## The wheels, source archives and npm packages in dist/, built twice and held against each other
	$(BIN)/python -m tools.dist

image: install  ## Build the container image IMAGE (largesse) with buildah, on BASE or on Debian's packages (docs/containers.md)
	PYTHON=$(BIN)/python deploy/container/build

bench: install-dev  ## All benchmarks, some 50 minutes; BENCH_ARGS=--quick only tries whether they run
	$(BIN)/python -m bench $(BENCH_ARGS)

bench-citus: install-dev  ## Orders on a Citus cluster that the program CLUSTER starts: processor time, and how evenly customers are spread
	LARGESSE_TEST_CLUSTER='$(CLUSTER)' $(BIN)/python -m bench.citus $(BENCH_ARGS)

bench-%: install-dev  ## One benchmark, such as bench-orders-hot
	$(BIN)/python -m bench $(BENCH_ARGS) $*

performance-doc: install-dev  ## Write docs/performance.md from bench/results
	$(BIN)/python -m bench.document

test-typescript: install-dev sdk/typescript/node_modules  ## The tests of the TypeScript client on node
	$(BIN)/pytest -q tests/typescript

sdk/typescript/node_modules: sdk/typescript/package-lock.json
	npm ci --prefix sdk/typescript --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

typescript-types: install-dev  ## Write the generated files of the TypeScript client from the OpenAPI documents
	$(BIN)/python -m tools.typescript_types

clean:  ## Remove .venv and caches; the data directory stays
	rm -rf .venv build dist sdk/typescript/build sdk/typescript/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench sdk -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
