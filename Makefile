# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    make test
PYTHON ?= python3
VENV   := .venv
OLDEST := .venv-oldest
BIN    := $(VENV)/bin
WORKERS ?= 2
# One thread for each test worker: the threads of several BLAS libraries would spin for the cores.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false

# Compiling takes most of the time of the quick tests. Unoptimised programs are compiled in half the
# time, and round otherwise; the slow tests run what users run.
QUICKLY := $(ONE_THREAD)\ --xla_backend_optimization_level=0

# Neighbours in a file compile the same programs: they stay with one worker until the other is idle.
PYTEST := -m pytest -n $(WORKERS) --dist worksteal

.PHONY: demo test test-slow coverage test-oldest lint bench clean

demo: $(VENV)/.demo
	$(BIN)/python -m jsvm demo

test: lint
	$(QUICKLY) $(BIN)/python $(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m slow

# On Python 3.11 counting lines costs half as much time again, so the tests do without.
coverage: $(VENV)/.dev
	$(QUICKLY) $(BIN)/python $(PYTEST) -m "not slow" --cov=jsvm --cov-branch \
		--cov-report=term-missing:skip-covered --cov-fail-under=95

# The quick tests on the lowest versions that pyproject.toml allows, whose own warnings do not count.
test-oldest: $(OLDEST)/.installed
	$(ONE_THREAD) $(OLDEST)/bin/python $(PYTEST) -m "not slow" -W default

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.bench
	$(BIN)/python -m bench.steps
	$(BIN)/python -m bench.first_call
	$(BIN)/python -m bench.solvers
	$(BIN)/python -m bench.scaling
	$(BIN)/python -m bench.psvm
	$(BIN)/python -m bench.psvm_variants
	$(BIN)/python -m bench.psvm_matrix
	$(BIN)/python -m bench.psvm_selection
	$(BIN)/python -m bench.derivatives
	$(BIN)/python -m bench.noisy_rprop
	$(BIN)/python -m bench.model_selection --share 0.3

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[plots]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	-$(BIN)/python -m pip install --quiet -e '.[libsvm]'  # needs a C++ compiler; its tests skip
	touch $@

$(OLDEST)/.installed: pyproject.toml tests/lowest_versions.py
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python tests/lowest_versions.py > $(OLDEST)/lowest.txt
	$(OLDEST)/bin/python -m pip install --quiet -e '.[dev]' -c $(OLDEST)/lowest.txt
	touch $@

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .ruff_cache .hypothesis .coverage build dist *.egg-info
