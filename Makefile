# make demo | make test | make test-slow   (each makes .venv and installs what it needs)
.PHONY: demo test test-slow lint clean
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
COMPILED := pyproject.toml setup.py $(wildcard src/*)

demo: .venv/demo
	$(BIN)/radabound demo

test: .venv/test
	$(BIN)/python -m pytest -q -m "not slow"

test-slow: .venv/test
	$(BIN)/python -m pytest -q -m slow

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# one stamp per set of extras; editable, and built anew when anything compiled changes
.venv/%: .venv/pip $(COMPILED)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv build *.egg-info src/_kernel.c radabound_fast/*.so
