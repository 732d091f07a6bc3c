# A fresh machine needs git, make and Python >= 3.11; everything else goes into .venv.
#   make demo       make test       make help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.accord-setup
LOCK := requirements.txt

# The first of these that is new enough and can make environments; PYTHON=/path/to/python chooses another.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3.14 python3.13 python3.12 python3.11 python3)

# uv works on .venv alone, with .venv's own interpreter, whatever environment is active.
UV = env -u VIRTUAL_ENV -u CONDA_PREFIX UV_PYTHON="$(CURDIR)/$(BIN)/python" UV_PYTHON_DOWNLOADS=never $(BIN)/uv

# One thread a worker: the tests use all cores by themselves.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup lock demo test nightly bench format clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

setup: $(STAMP) ## make .venv with everything needed (again only when pyproject.toml or the lock changed)

lock: $(STAMP) ## write requirements.txt anew after a change of dependencies (OPTIONS=--upgrade for the newest versions)
	$(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --all-extras --group dev \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(OPTIONS) \
		--output-file $(LOCK) pyproject.toml

demo: $(STAMP) ## make private synthetic flights from the example table
	$(BIN)/accord demo

ifdef AREA
test: $(STAMP)
	$(BIN)/python tests/areas.py $(AREA) -n auto --dist worksteal
else
test: $(STAMP) ## every check but the long ones: lint, format, types, layers, tests (AREA=couplings: the tests of one area)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist worksteal
endif

nightly: $(STAMP) ## the long tests
	$(BIN)/pytest -m nightly -n auto --dist worksteal --timeout 3600

bench: $(STAMP) ## every benchmark, one after the other
	@for script in benchmarks/*.py; do \
		[ -e "$$script" ] || { echo "no benchmarks yet"; exit 1; }; \
		echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

format: $(STAMP) ## let ruff rewrite the source
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
		if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			exec "$$candidate" -m venv --clear $(VENV); \
		fi; \
	done; \
	echo "make: no Python >= 3.11 with venv and ensurepip found; install one (Debian: python3-venv) or say PYTHON=/path/to/python" >&2; \
	exit 1

# Every download is checked against the hashes of the lock, from whatever index pip and uv are set to: uv itself first.
# accord is built by the locked tools.
$(STAMP): pyproject.toml $(LOCK) $(BIN)/python
	@awk '/^[^ #]/ { mine = /^uv==/ } mine' $(LOCK) > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/uv.txt
	$(UV) pip install --quiet --require-hashes --no-deps -r $(LOCK)
	$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
