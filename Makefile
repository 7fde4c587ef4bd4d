# Two commands: `make demo` and `make test`. They make their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NAME ?=
# Tests start a hundred processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all suite types lint check docs bench release fuzz golden spark versions lowest audit-packages clean help

help:
	@echo "make demo            install, audit a simulated platform on four questions, print the verdicts"
	@echo "make test            install, then ruff, mypy strict and the test suite"
	@echo "make test-all        the same, with what takes minutes (30 kills of each runner, ...) and peers"
	@echo "make docs            build the site into site/html; a warning is an error"
	@echo "make fuzz            make up inputs for longer (EXAMPLES=2000 in each test; MINUTES=8, SEED=31 a target)"
	@echo "make release         build into dist, with a bill of materials (CycloneDX)"
	@echo "make golden          are all numbers of many small plans as stored? (WITH=--spark, --words)"
	@echo "make spark           of these only what needs Spark, on a cluster of two workers (Java 17)"
	@echo "make versions        the smoke suite on every Python from 3.11 that is installed"
	@echo "make lowest          the smoke suite with the lowest versions that pyproject.toml allows"
	@echo "make audit-packages  look the installed packages up among known vulnerabilities"
	@echo "make bench           every benchmark in quick form (NAME=core: one of them)"

# uv installs in a tenth of pip's time; pip does it where uv cannot (an index of your own in pip.conf).
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TEST_NEEDS := --requirement requirements-test.txt --editable '.[models,tuning]'
DOCS_NEEDS := --requirement requirements-docs.txt --editable '.[models,app]'
# Spark comes as a source of 450 MB, of which most of the time went into packing it again.
UNPACKED := --config-settings-package 'pyspark:--build-option=--compression=stored'
install = $(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(UNPACKED) $(1) || $(PIP) $(1)

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@$(PIP) 'uv>=0.5,<1' || true
	$(call install,--editable .)
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements-test.txt
	$(call install,$(TEST_NEEDS))
	@touch $@

# By pip alone: its settings name an index of torch for the processor, which uv does not read.
$(VENV)/.test-all: $(VENV)/.test requirements-test-all.txt
	$(PIP) --requirement requirements-test-all.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.run requirements-docs.txt
	$(call install,$(DOCS_NEEDS))
	@touch $@

demo: $(VENV)/.run
	$(BIN)/ombud demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: lint types

# The cache (.mypy_cache) stays: a second run checks only what changed.
types: $(VENV)/.test
	$(BIN)/mypy

# One process a core, and one thread each: every process imports and compiles for itself.
SUITE := OMBUD_PLUGINS=none OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

suite: $(VENV)/.test
	$(SUITE)

# mypy runs beside the tests: it takes one core for a minute when its cache is empty.
test: lint
	@$(MAKE) --no-print-directory --jobs 2 types suite

test-all: lint $(VENV)/.test-all
	@OMBUD_SLOW=1 $(MAKE) --no-print-directory --jobs 2 types suite

docs: $(VENV)/.docs
	OMBUD_PLUGINS=none $(BIN)/python docs/site.py site
	@echo "site/html/index.html"

EXAMPLES ?= 2000
MINUTES ?= 8
SEED ?= 31
# The wheel, the source archive, and a bill of materials of what they need (CycloneDX).
release: $(VENV)/.test
	$(BIN)/python -m uv build --quiet --out-dir dist
	$(BIN)/python .ci/sbom.py dist/ombud.cdx.json
	@ls dist

fuzz: $(VENV)/.test
	OMBUD_PLUGINS=none OMBUD_FUZZ=$(EXAMPLES) $(BIN)/python -m pytest tests/fuzz
	OMBUD_PLUGINS=none $(BIN)/python -W ignore tests/fuzz/mutations.py --minutes $(MINUTES) --seed $(SEED)

WITH ?=
golden: $(VENV)/.test
	$(BIN)/python tests/golden/golden.py $(WITH)

spark: $(VENV)/.test
	OMBUD_PLUGINS=none OMBUD_REQUIRE_SPARK=1 $(BIN)/python -m pytest tests/audits/test_spark_cluster.py \
		tests/audits/test_on_spark.py tests/systems/recommenders/adapters/test_spark.py

versions:
	.ci/versions

lowest:
	.ci/versions lowest

audit-packages: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7,<3'
	$(BIN)/python -m pip_audit --strict --local --skip-editable

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(NAME)

clean:
	rm -rf $(VENV) .bench-* ombud-demo site
