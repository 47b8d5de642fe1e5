# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WORKERS ?= 2
# One thread for each test worker: the threads of several BLAS libraries would spin for the cores.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false

.PHONY: demo test test-slow lint bench clean

demo: $(VENV)/.demo
	$(BIN)/python -m jsvm demo

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.bench
	$(BIN)/python -m bench.steps
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

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build *.egg-info
