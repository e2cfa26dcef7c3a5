# `make demo` and `make test` each set up everything they need on a machine with Python 3.11, pip, make and a compiler.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test test-slow test-faults test-cluster test-mutations test-hostile test-coverage test-processors lint format clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY)  ## train a small network on real digits, score its test points, write a report
	rm -rf brittle-demo
	$(BIN)/brittle demo --out brittle-demo

test: $(READY)  ## the whole suite, about six minutes on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

test-slow: $(READY)  ## what takes longer than the suite may
	$(BIN)/python -m pytest -m slow

test-faults: $(READY)  ## kills a run at every step of its commits and at random, and counts what is lost
	PYTHONPATH=tests $(BIN)/python -m checks.faults

test-cluster: $(READY)  ## kills workers, drivers and nodes of runs on a Ray cluster, and counts what is lost
	PYTHONPATH=tests $(BIN)/python -m checks.cluster_faults

test-mutations: $(READY)  ## takes safeguards out one at a time, and shows that a test turns red for each
	PYTHONPATH=tests $(BIN)/python -m checks.mutations

test-hostile: $(READY)  ## scores odd networks and sets every number beside a truth that shares no code with it
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.hostile

test-coverage: $(READY)  ## counts how often the intervals of sampled scores miss the truth on linear networks
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m checks.linear_coverage

test-processors: $(READY)  ## what computes, by the kernels of three processors with one and two threads, and a table
	PYTHONPATH=tests $(BIN)/python -m checks.processors

lint: $(READY)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv brittle-demo build dist
