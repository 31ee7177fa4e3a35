# What a person does with Flowbook's source. Everything lives in .venv; nothing needs root.

PYTHON ?= python3
# One that runs: where pyenv has it, what stands in the path may only say that nobody chose it.
NEWEST_PYTHON ?= $(shell for python in python3.13 \
	"$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.13*/bin/python3.13; do \
	"$$python" --version >/dev/null 2>&1 && echo "$$python" && break; done)
VENV := .venv/bin
BUNDLE := flowbook/widgets/static/flowbook.js
EXTENSION := .venv/share/jupyter/labextensions/flowbook
INSTALL := $(VENV)/python -m pip install --disable-pip-version-check --quiet --editable

.PHONY: lab tutorial test browser oldest newest soak bench gpu docs proto front-end format clean

# JupyterLab on the welcome notebook, beside guides and examples; its options in LAB_OPTIONS.
lab: .venv/lab.stamp front-end
	$(VENV)/jupyter trust notebooks/*.ipynb
	$(VENV)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/welcome.ipynb \
		$(LAB_OPTIONS)

# The welcome notebook without a browser: what it prints and shows, as text.
tutorial: .venv/lab.stamp
	$(VENV)/python notebooks/run_headless.py notebooks/welcome.ipynb

# The phases that tools/phases.py lists with their time budgets; PHASES="types layers" picks some.
test: .venv/dev.stamp front-end
	$(VENV)/python tools/phases.py $(PHASES)

# What people see: JupyterLab and pages in Chromium.
browser: .venv/dev.stamp front-end
	$(VENV)/python tools/phases.py browser

# Some tests on the oldest versions of other packages that pyproject.toml admits.
oldest:
	$(PYTHON) tools/bounds.py oldest .venv/oldest

# The same on the newest versions, and on a newer Python.
newest:
	@python="$(NEWEST_PYTHON)"; if [ -n "$$python" ]; then \
		set -x; "$$python" tools/bounds.py newest .venv/newest; \
	else echo "no Python 3.13: nothing is tried on the newest versions"; fi

soak: .venv/dev.stamp
	$(VENV)/python -m pytest -m soak --hypothesis-profile soak --timeout 0

bench: .venv/dev.stamp
	$(VENV)/python -m benchmarks

# On a machine with a GPU: every test that needs one, and how long things take there.
gpu: .venv/dev.stamp
	$(INSTALL) '.[gpu]'
	$(VENV)/python -m pytest tests/gpu tests/exec/kernels/cuda -p no:cacheprovider -rs
	$(VENV)/python -m tests.gpu.timings

# The documentation, in site/.
docs: .venv/dev.stamp
	$(VENV)/mkdocs build

# Generated code refuses a protobuf older than its generator: this one is as old as pyproject.toml's.
proto: .venv/proto.stamp
	.venv/proto/bin/python -m grpc_tools.protoc --proto_path=. --python_out=. --pyi_out=. \
		flowbook/graph/numerics/formats/example.proto flowbook/graph/storing/graph.proto \
		flowbook/exec/plan/program.proto flowbook/tensorflow/messages.proto

# The live views, what draws graphs, and JupyterLab's extension. Without npm a notebook shows text
# of graphs, and pictures of all else.
front-end:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(BUNDLE) $(EXTENSION); \
	else echo "no npm: graphs are shown as text, and all else as static pictures"; fi

$(BUNDLE): labextension/node_modules/.package-lock.json $(wildcard labextension/src/*/*.ts) \
		labextension/build.mjs
	cd labextension && npm run --silent build

# The build above makes it; JupyterLab finds it as it is in the source.
$(EXTENSION): | $(BUNDLE) .venv/bin/python
	mkdir -p $(@D)
	ln -sfn $(CURDIR)/labextension/prebuilt $@

labextension/node_modules/.package-lock.json: labextension/package-lock.json
	cd labextension && npm ci --silent

format: .venv/dev.stamp
	$(VENV)/ruff check --fix
	$(VENV)/ruff format

clean:
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist site
	rm -rf flowbook/widgets/static labextension/lib labextension/node_modules labextension/prebuilt
	find flowbook tests benchmarks notebooks tools -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

# A stamp older than pyproject.toml asks for the installation anew.
.venv/lab.stamp: pyproject.toml | .venv/bin/python
	$(INSTALL) '.[notebooks]'
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(INSTALL) '.[notebooks,fast,onnx,docs,dev]'
	touch $@

.venv/proto.stamp: | .venv/bin/python
	$(PYTHON) -m venv .venv/proto
	.venv/proto/bin/python -m pip install --disable-pip-version-check --quiet grpcio-tools==1.72.1
	touch $@
