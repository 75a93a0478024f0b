# Two commands do it all on a fresh machine: `make demo` and `make test`.
# Both need Python 3.11+, a C++20 compiler, make and the package index.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILD  := build
NATIVE := $(shell find native CMakeLists.txt -name '*.cpp' -o -name '*.hpp' -o -name 'CMakeLists.txt')
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# For what takes minutes: a line that says what is being done, and everything that was said if it fails.
SHOW   := @$(PYTHON) .ci/show_progress.py
LOUD   := $(BIN)/python -m pip --disable-pip-version-check --verbose

SITE   := $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))"
NATIVE_OPTIONS := -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DDUALFIELD_TESTS=ON -DDUALFIELD_WERROR=ON \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON

# Measurements and the tests on real data look here; they skip where it is absent.
DUALFIELD_DATA ?= $(wildcard $(abspath ../shared/data))
ifneq ($(DUALFIELD_DATA),)
export DUALFIELD_DATA
endif

.PHONY: demo check slow-list test pytest native-test lint format bench docs wheel sanitize fuzz torture clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo      build, train a CRF that finds names, show what it answers, write report.html"
	@echo "make check     lint, types and the quick tests, for while you work"
	@echo "make test      lint, native tests, Python tests, doctests, documentation"
	@echo "make lint      ruff, mypy --strict, clang-format"
	@echo "make format    let ruff and clang-format rewrite the sources"
	@echo "make bench     side-by-side measurements, written to benchmarks/results/"
	@echo "make docs      the HTML documentation, in docs/_build/html"
	@echo "make wheel     source distribution and wheel in dist/, checked and tried in an empty environment"
	@echo "make sanitize  native tests and part of the Python suite under ASan and UBSan"
	@echo "make torture   hostile problems for every estimator, PROBLEMS=100000, and new draws for every property"
	@echo "make fuzz      changed files for every reader, FUZZ_SECONDS=60 for each"
	@echo "make clean     remove what was built"

demo: $(VENV)/.built
	$(BIN)/dualfield demo --report report.html

# What takes long is listed in tests/slow.txt, and left out.
check: lint
	$(BIN)/python -m pytest -q -n auto -m "not slow" $(PYTEST_ARGS)

slow-list: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --rewrite-slow --durations=20

test: lint native-test pytest docs

pytest: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

native-test: $(VENV)/.dev
	$(BIN)/cmake -S . -B $(BUILD)/native $(NATIVE_OPTIONS) > /dev/null
	$(BIN)/cmake --build $(BUILD)/native
	$(BUILD)/native/native_tests

lint: $(VENV)/.built $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE))

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter %.cpp %.hpp,$(NATIVE))

bench: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs docs/_build/html

# From the source distribution, so that what it lacks is noticed. The repaired wheel says which C library it needs; it takes the
# place of the one that was built. Both are tried by a Python that sees nothing else.
TRIAL := $(BUILD)/wheel-trial
wheel: $(VENV)/.tools
	$(PIP) install --group release
	rm -rf dist $(TRIAL)
	$(BIN)/python -m build --outdir $(TRIAL)/built
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist $(TRIAL)/built/*.whl
	mv $(TRIAL)/built/*.tar.gz dist
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(TRIAL)/empty
	$(TRIAL)/empty/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	cd $(TRIAL) && empty/bin/python -I $(abspath .ci/check_wheel.py)

# The interpreter itself is not instrumented, so the run time is preloaded and leaks of Python's own are not counted. -S keeps the
# editable install, which would win over PYTHONPATH, out of the way.
SANITIZED := $(BUILD)/sanitize
sanitize: $(VENV)/.built $(VENV)/.dev
	$(BIN)/cmake -S . -B $(SANITIZED)/native $(NATIVE_OPTIONS) -DDUALFIELD_SANITIZE=ON > /dev/null
	$(BIN)/cmake --build $(SANITIZED)/native
	$(SANITIZED)/native/native_tests
	$(PIP) install --no-build-isolation --no-deps --target $(SANITIZED)/site --upgrade . \
	    --config-settings=build-dir=$(SANITIZED)/wheel --config-settings=cmake.define.DUALFIELD_SANITIZE=ON \
	    --config-settings=cmake.define.DUALFIELD_STUBS=OFF
	PYTHONPATH=$(SANITIZED)/site:$$($(SITE)) LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -S -m pytest -q -s -p no:cacheprovider \
	    tests/structures tests/data tests/kernels tests/scores \
	    tests/objectives tests/solvers tests/io tests/persistence tests/features tests/certificates

# What is found here is kept in the suite: seeds in tests/certificates, draws as explicit examples.
PROBLEMS ?= 100000
torture: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m tests.certificates --problems $(PROBLEMS)
	DUALFIELD_HYPOTHESIS=explore $(BIN)/python -m pytest -n auto -m hypothesis tests

# Each harness leaves what it has found in a folder of its own, and goes on from there the next time.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.built $(VENV)/.dev
	$(PIP) install --group fuzz
	for harness in $(basename $(notdir $(wildcard fuzz/fuzz_*.py))); do \
	    mkdir -p $(BUILD)/fuzz/$$harness && $(BIN)/python fuzz/$$harness.py $(BUILD)/fuzz/$$harness \
	        -max_total_time=$(FUZZ_SECONDS) -max_len=100000 -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 \
	        -artifact_prefix=$(BUILD)/fuzz/ || exit 1; \
	done

# Installed once per change of pyproject.toml; the library itself is installed in place, so that Python changes need no build.
# The demo needs what the build and reports need; the rest of the tools is for those who work on the library.
$(VENV)/.tools: pyproject.toml
	@test -x $(BIN)/python || { echo "Making $(VENV) ..." && $(PYTHON) -m venv $(VENV); }
	@$(PIP) install --upgrade pip
	$(SHOW) "Installing build tools" $(LOUD) install --group build
	@touch $@

$(VENV)/.dev: $(VENV)/.tools
	$(SHOW) "Installing tools for tests and documentation" $(LOUD) install --group dev
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	$(SHOW) "Compiling dualfield; the first time this takes a few minutes" $(LOUD) install --no-build-isolation \
	    --editable '.[report]' --config-settings=cmake.define.DUALFIELD_WERROR=ON
	@cp $$($(SITE))/dualfield/_native.pyi src/dualfield/_native.pyi
	@touch $@

clean:
	rm -rf $(BUILD) $(VENV) dist docs/_build docs/api docs/gallery report.html src/dualfield/_native.pyi
