# Two commands matter: `make report` runs the main job on a packaged board, `make test` passes the tests.
# Either one first makes .venv; `make clean` removes it and everything else that was made.

PY := .venv/bin/python
READY := .venv/.ready
PIP := $(PY) -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt
# One BLAS thread: chains and XLA already use the cores, and sums come out the same on every machine.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1

.PHONY: report test lint types clean

report: $(READY)
	$(PY) -m evalbayes report simulated -o report.html

# Tests that hold something to a time run by themselves; the others in two processes. JUNIT=FOLDER keeps what was run.
TIMED := tests/oracles/test_board.py tests/pairs/test_pairs_estimators.py tests/read/test_read_inspect_log.py \
	tests/test_datasets.py tests/test_main_job.py tests/test_packaging.py tests/test_read_table.py tests/test_report.py \
	tests/test_storage_fit.py

test: $(READY)
	$(PY) -m pytest $(if $(JUNIT),--junitxml=$(JUNIT)/timed.xml) $(TIMED)
	$(PY) -m pytest $(if $(JUNIT),--junitxml=$(JUNIT)/others.xml) -n 2 --dist loadfile $(addprefix --ignore=,$(TIMED))

lint: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

# mypy cannot see through an editable install of two folders, so it gets a package made of links.
types: $(READY)
	rm -rf build/types
	mkdir -p build/types/evalbayes
	ln -s "$(CURDIR)"/src/evalbayes/* "$(CURDIR)/models" build/types/evalbayes/
	MYPYPATH=build/types $(PY) -m mypy -p evalbayes

# The stamp is written last: an interrupted install is started again from nothing.
$(READY): pyproject.toml constraints.txt
	@python=$$(sh .ci/find-python) || exit 1; \
	echo "Making .venv with $$python and installing into it: about a minute, more on a slow network"; \
	rm -rf .venv && "$$python" -m venv .venv \
	&& $(PIP) setuptools && $(PIP) --no-build-isolation -e '.[dev]' \
	&& touch $@

clean:
	rm -rf .venv build dist report.html report.json src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src models tests -name __pycache__ -type d -prune -exec rm -rf {} +
