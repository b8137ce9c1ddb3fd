# Two commands do it all: `make run` trains and judges a policy, `make test` runs every test.
# Both install what they need into .venv first. `make help` lists the rest.

PYTHON  ?= python3
VENV    ?= .venv
# Test processes; 2 suits a small machine.
WORKERS ?= 2
# Another build of torch, installed before the rest:
#   make run TORCH='torch --index-url https://download.pytorch.org/whl/cpu'
TORCH   ?=

# Tests of the rules that must also pass without the compiler (NUMBA_DISABLE_JIT=1). Keep it to
# files that finish in a minute or two as plain Python.
RULE_TESTS := $(addprefix tests/test_,$(addsuffix .py,board rules worked_cases notation game \
              differential properties golden perft))

# Many small arrays and small networks: threads inside numpy and torch only get in each other's
# way. The engine spreads games over threads by itself (see training and evaluation options).
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Two makes started at once in one folder take turns at installing, where `flock` exists.
LOCK  := $(if $(shell command -v flock 2>/dev/null),flock "$(VENV).lock")
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal

# Checked when a recipe needs it, so that a wrong Python gives one line and no traceback.
check_version = $(if $(shell "$(PYTHON)" -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null),,\
    $(error Python 3.11 or newer is needed, "$(PYTHON)" is not: try `make PYTHON=python3.11 …`))
check_venv = $(if $(shell "$(PYTHON)" -c 'import venv, ensurepip; print(1)' 2>/dev/null),,\
    $(error "$(PYTHON)" lacks venv or ensurepip: install them (Debian and Ubuntu: apt install python3-venv)))

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long bench lint clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1@/' \
	  | awk -F@ '{ printf "%-18s %s\n", $$1, $$2 }'

setup:  ## make .venv and install everything (done by the others when needed)
	@$(LOCK) $(MAKE) -s --no-print-directory $(STAMP)

run: setup  ## train a policy, judge it against the baselines, write a report into runs/
	@$(PY) -m training.run

test: setup  ## the rules without the compiler, then every test but the long ones
	@failed=0; \
	echo "The rules without the compiler:"; \
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(RULE_TESTS) || failed=1; \
	echo "All tests:"; \
	$(PYTEST) tests || failed=1; \
	exit $$failed

test-long: setup  ## the tests marked `long` (many minutes)
	@$(PYTEST) -m long tests

bench: setup  ## measure speed and memory against peers: a table and JSON
	@$(PY) -m benchmarks

lint: setup  ## ruff and mypy
	@$(PY) -m ruff check .
	@$(PY) -m mypy

clean:  ## remove .venv, caches and builds; runs/ stays
	rm -rf "$(VENV)" "$(VENV).lock" build dist *.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- installing ---------------------------------------------------------------------------------
# The stamp makes pip run again only when a requirement changed. A torch that the user chose is
# remembered by a file, and its line in the constraints is left out from then on.

CHOSEN := $(VENV)/.torch-chosen

$(PY):
	$(check_version)$(check_venv)
	@echo "Making $(VENV) …"
	@"$(PYTHON)" -m venv "$(VENV)"

$(STAMP): pyproject.toml constraints.txt $(if $(TORCH),FORCE) | $(PY)
	@if [ -n '$(TORCH)' ] && [ "$$(cat $(CHOSEN) 2>/dev/null)" != '$(TORCH)' ]; then \
	  echo "Installing the chosen torch: $(TORCH)"; \
	  $(PY) -m pip uninstall -q -y torch 2>/dev/null; \
	  $(PY) -m pip install -q $(TORCH) && printf '%s\n' '$(TORCH)' > $(CHOSEN) \
	    && rm -f $@ || exit 1; \
	fi; \
	if [ -e $@ ] && [ ! pyproject.toml -nt $@ ] && [ ! constraints.txt -nt $@ ]; then exit 0; fi; \
	echo "Installing what the project needs (minutes the first time) …"; \
	if [ -e $(CHOSEN) ]; then grep -v '^torch==' constraints.txt; else cat constraints.txt; fi \
	  > $(VENV)/constraints.txt; \
	$(PY) -m pip install -q -c $(VENV)/constraints.txt -e '.[all]' && touch $@

FORCE:
.PHONY: FORCE
