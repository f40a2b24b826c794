# Every command a person needs. `make run` and `make test` install what they need into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready
# The tests start hundreds of short processes, which shall not compile the same modules again and again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test suite faults lint types bench docs golden lock clean

run: $(READY)           ## Start ECHO on ./data/vault and print the line that registers it
	$(BIN)/echo-mcp run

test: $(DEV_READY)      ## Everything CI runs, side by side
	$(MAKE) --no-print-directory -j 3 lint types suite

suite: $(DEV_READY)
	$(BIN)/python -m pytest -n 2 -m "not slow"

SHARD ?= 1/1
faults: $(DEV_READY)    ## Every scenario of eval/faults, SHARD=2/6 of them; goes on where it was stopped
	PYTHONPATH=eval $(BIN)/python -m faults.run --shard $(SHARD)

lint: $(DEV_READY)
	$(BIN)/ruff check .

types: $(DEV_READY)
	$(BIN)/mypy

bench: $(DEV_READY)     ## Latency as ratios to a bare route in the same run; writes build/bench.json
	PYTHONPATH=eval $(BIN)/python eval/bench/run.py

docs: $(READY)          ## Renew the pages and the picture that are derived from the code
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/make_picture.py

golden: $(DEV_READY)    ## Renew eval/golden from what the code does now; look at the difference before you commit it
	$(BIN)/python eval/goldenfiles.py

COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
lock:                   ## Renew the pinned, hashed requirements (needs uv)
	$(COMPILE) pyproject.toml requirements-build.in -o requirements.lock
	$(COMPILE) pyproject.toml requirements-build.in --extra dev -o requirements-dev.lock

# The development requirements hold the others, so a test machine installs one list; it compiles what it imports.
define install
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ECHO needs Python 3.11 or newer; say which with: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes $(2) -r $(1)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
endef

$(READY): requirements.lock pyproject.toml
	$(call install,requirements.lock)

$(DEV_READY): requirements-dev.lock pyproject.toml
	$(call install,requirements-dev.lock,--no-compile)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
