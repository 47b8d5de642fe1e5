# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-slow lint bench clean

demo: $(VENV)/.demo
	$(BIN)/python -m jsvm demo

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.bench
	$(BIN)/python -m bench.steps

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[plots]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build *.egg-info
