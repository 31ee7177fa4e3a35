"""Run notebooks and store their outputs in them, as they are to be committed.

    python notebooks/store_outputs.py notebooks/*.ipynb

What differs from machine to machine stays out: times, the state of widgets, versions, and the
frames of tracebacks, which hold paths. An error is stored as its type and message.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

import nbformat
from nbclient import NotebookClient

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def clean(notebook: nbformat.NotebookNode) -> None:
    """Drop from a notebook what belongs to this machine and this run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            # A live view is of a kernel that has ended; its identifier is of that kernel too.
            for kind in ("flowbook.view", "jupyter.widget-view"):
                output.get("data", {}).pop(f"application/vnd.{kind}+json", None)
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]


def main() -> int:
    """Run and store the notebooks named on the command line; return the exit status."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", type=Path, nargs="+")
    for path in parser.parse_args().notebooks:
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],  # it warns of every kernel on plain TCP
            resources={"metadata": {"path": path.parent}},
            record_timing=False,
        ).execute()
        clean(notebook)
        nbformat.write(notebook, path)
        print(f"stored the outputs of {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
