# make demo | make test | make test-all | make test-slow   (each makes .venv with what it needs)
# make bench | make bench-quick | make docs | make edge
# make sanitize | make native | make qemu | make fuzz | make tsan | make faults | make attacks
# make platforms | make chroot | make test-lowest | make release
.PHONY: demo test test-all test-slow test-lowest bench bench-quick docs edge sanitize native qemu fuzz \
	fuzz-quick tsan faults attacks attacks-quick platforms chroot release clean
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
COMPILED := pyproject.toml setup.py $(wildcard src/*/* radabound_fast/_kernels/*.px[dy] radabound_fast/_kernels/*.h)
# else each of the hundreds of processes that tests start compiles the package anew
export PYTHONDONTWRITEBYTECODE :=

demo: .venv/demo
	$(BIN)/radabound demo

# in as many processes as there are cores; files in their own order, for by default those of few
# tests, which may take longest, come last
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

test: .venv/test
	$(PYTEST) -m "not slow and not thorough"

test-all: .venv/test
	$(PYTEST) -m "not slow"

test-slow: .venv/test
	$(BIN)/python -m pytest -q -m slow

# with the lowest versions that pyproject.toml allows; of the extras, scikit-learn alone
LOWEST := "numpy==1.26.*" "scipy==1.11.*" "scikit-learn==1.6.*"
test-lowest: .venv/test
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet $(LOWEST) joblib tqdm pandas mpmath pytest hypothesis
	build/lowest/bin/python -m pytest -q -m "not slow and not source" $(addprefix tests/,$(addsuffix .py,\
		kernels/test_kernels kernels/test_blocks kernels/test_widen \
		rows/test_packing rows/test_labels guards/test_guard \
		rows/test_signs files/test_files guards/test_answers \
		spaces/test_spaces guards/test_holdout guards/test_halting_guards \
		guards/test_declared_search guards/test_ladder guards/test_guess_and_check \
		guards/test_fixed_sequence rows/test_rademacher bounds/test_bounds_binomial \
		integrations/test_integration_sklearn))

docs: .venv/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs site
	$(BIN)/python docs/make/links.py site

# into dist/: what a release has and this machine can make, tried where CI does not try it
release: .venv/test attacks test-lowest platforms chroot
	.ci/release

# the guard for microcontrollers as a library of its own
edge:
	$(PYTHON) src/edge/package/make_tarball.py

# what the environment says of BLAS would make the peers slower or faster than a user's
BENCH := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python

bench: .venv/bench
	$(BENCH) -m pytest -c benchmarks/pytest.ini benchmarks
	$(BENCH) -m benchmarks.report

bench-quick: .venv/bench
	$(BENCH) -m benchmarks.goals

# the tests of the kernels under AddressSanitizer and UBSan, with an extension of their own
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -g -O1
SANITIZED := env LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 \
	PYTHONMALLOC=malloc PYTHONPATH=build/sanitize/lib $(BIN)/python -P

sanitize: .venv/test
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python setup.py -q build --force \
		--build-base build/sanitize --build-lib build/sanitize/lib
	$(SANITIZED) -c "from radabound_fast._kernels import guard; assert 'sanitize' in guard.__file__"
	$(SANITIZED) -m pytest -q tests/kernels/test_kernels.py tests/kernels/test_blocks.py tests/rows/test_packing.py

# the C sources without Python: two compilers here; ARM of 64 and of 32 bits under emulation
native qemu:
	$(MAKE) -C tests/native tools $@

# CPython 3.14 and newer, of Debian testing; as root
chroot:
	tests/native/try_pythons

# docs/evidence/platforms.md
platforms: .venv/platforms
	$(MAKE) -C tests/native tools
	$(BIN)/python tests/native/platforms.py

# docs/evidence/fuzzing.md; the quick one writes nothing
fuzz: .venv/fuzz
	$(BIN)/python tests/fuzz/run.py

fuzz-quick: .venv/fuzz
	$(BIN)/python tests/fuzz/run.py --quick

tsan:
	$(PYTHON) tests/fuzz/run.py --threads

# docs/evidence/reliability.md
faults: .venv/test
	$(BIN)/python tests/faults/try_faults.py

# docs/evidence/attacks.md: an hour, on this machine alone; the quick one takes a minute, writes nothing
attacks: .venv/test
	PYTHONPATH=tests $(BIN)/python -m attacks

attacks-quick: .venv/test
	PYTHONPATH=tests $(BIN)/python -m attacks --quick

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# one stamp per set of extras; editable, and built anew when anything compiled changes
.venv/%: .venv/pip $(COMPILED)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv build dist wheelhouse site demo *.egg-info docs/evidence/reproduction/cells
	rm -rf radabound_fast/_kernels/*.so radabound_fast/_kernels/*.pyd
	find . -type d \( -name __pycache__ -o -name .pytest_cache -o -name .hypothesis \
		-o -name .benchmarks -o -name .mypy_cache -o -name .ruff_cache \
		-o -name .ipynb_checkpoints -o -name jupyter_execute \) -prune -exec rm -rf {} +
