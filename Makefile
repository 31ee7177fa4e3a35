# What a person does with Flowbook's source. Everything lives in .venv; nothing needs root.

PYTHON ?= python3
VENV := .venv/bin
INSTALL := $(VENV)/python -m pip install --disable-pip-version-check --quiet --editable

.PHONY: lab tutorial test soak bench docs proto format clean

# JupyterLab on the welcome notebook, its options in LAB_OPTIONS.
lab: .venv/lab.stamp
	$(VENV)/jupyter trust notebooks/*.ipynb
	$(VENV)/jupyter lab $(LAB_OPTIONS) notebooks/welcome.ipynb

# The welcome notebook without a browser: what it prints and shows, as text.
tutorial: .venv/lab.stamp
	$(VENV)/python notebooks/run_headless.py notebooks/welcome.ipynb

# The phases that tools/phases.py lists with their time budgets; PHASES="types layers" picks some.
test: .venv/dev.stamp
	$(VENV)/python tools/phases.py $(PHASES)

soak: .venv/dev.stamp
	$(VENV)/python -m pytest -m soak --hypothesis-profile soak --timeout 0

bench: .venv/dev.stamp
	$(VENV)/python -m benchmarks

# The documentation, in site/.
docs: .venv/dev.stamp
	$(VENV)/mkdocs build

proto: .venv/dev.stamp
	$(VENV)/python -m grpc_tools.protoc --proto_path=. --python_out=. --pyi_out=. \
		flowbook/graph/graph.proto

format: .venv/dev.stamp
	$(VENV)/ruff check --fix
	$(VENV)/ruff format

clean:
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist site
	find flowbook tests benchmarks notebooks tools -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

# A stamp older than pyproject.toml asks for the installation anew.
.venv/lab.stamp: pyproject.toml | .venv/bin/python
	$(INSTALL) '.[lab,data,images]'
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(INSTALL) '.[lab,data,images,onnx,tensorboard,docs,dev]'
	touch $@
