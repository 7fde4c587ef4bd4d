# Two commands: `make demo` and `make test`. They make their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NAME ?=

.PHONY: demo test test-all check bench clean help

help:
	@echo "make demo            install, run the demo audit, print where its report is"
	@echo "make test            install, then ruff, mypy strict and the test suite"
	@echo "make test-all        the same, with what takes minutes (30 kills of each runner, ...)"
	@echo "make bench           every benchmark in quick form (NAME=core: one of them)"

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements-test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-test.txt --editable '.[models,tuning]'
	@touch $@

demo: $(VENV)/.run
	$(BIN)/ombud demo

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SUITE := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test: check
	OMBUD_PLUGINS=none $(SUITE)

test-all: check
	OMBUD_PLUGINS=none OMBUD_SLOW=1 $(SUITE)

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(NAME)

clean:
	rm -rf $(VENV) .bench-* ombud-demo
