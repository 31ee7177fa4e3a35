"""Flowbook on the oldest and on the newest versions of what it needs: `make oldest`, `make newest`.

An environment of its own gets of each package that pyproject.toml names the oldest version that it
admits, or the newest that there is, with the Python that runs this program. A few tests of each
part run there that meets other packages, for about a minute; all tests run in `make test`.

    python3.11 tools/bounds.py oldest .venv/oldest
    python3.13 tools/bounds.py newest .venv/newest
"""

import subprocess
import sys
import tomllib
import venv
from argparse import ArgumentParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What a person installs. ONNX is not here: its oldest version that admits all operations of its
# newest needs a protobuf above the oldest that Flowbook runs on.
EXTRAS = ("data", "fast", "lab", "port", "tensorboard")
TOOLS = ("hypothesis", "pandas", "pytest", "pytest-timeout")

# Of the guides, that to ONNX.
WITHOUT_ONNX = "not guide-onnx"

TESTS = (
    "tests/exec/files",
    "tests/exec/kernels/test_machine_code.py",
    "tests/exec/kernels/test_onednn.py",
    "tests/exec/session",
    "tests/graph/numerics/test_elementary.py",
    "tests/graph/numerics/test_products.py",
    "tests/graph/ops/image",
    "tests/graph/storing/test_graph_file.py",
    "tests/port",
    "tests/test_public_api.py",
    "tests/test_readme.py",
    "tests/widgets/graphs",
    "tests/widgets/summaries",
)


def named() -> list[str]:
    """The packages that pyproject.toml names, with the oldest version of each."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    optional = project["optional-dependencies"]
    found = project["dependencies"] + [each for extra in EXTRAS for each in optional[extra]]
    found += [each for each in optional["dev"] if each.partition(">=")[0] in TOOLS]
    return sorted(set(found))


def main() -> int:
    """Make the environment if it is not there, run the tests in it, and return their status."""
    parser = ArgumentParser(description="Run some tests on the oldest or the newest versions.")
    parser.add_argument("bound", choices=("oldest", "newest"))
    parser.add_argument("folder", type=Path, help="where the environment is")
    asked = parser.parse_args()
    wanted = named()
    if asked.bound == "oldest":
        wanted = [each.replace(">=", "==", 1) for each in wanted]
    python = asked.folder.absolute() / "bin" / "python"
    made_of = asked.folder / "made_of.txt"
    if not made_of.is_file() or made_of.read_text() != "\n".join(wanted):
        venv.create(asked.folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*install, *wanted, "--editable", str(ROOT)], check=True)
        made_of.write_text("\n".join(wanted))
    tests = [str(python), "-m", "pytest", "-q", *TESTS, "-k", WITHOUT_ONNX]
    return subprocess.run(tests, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
