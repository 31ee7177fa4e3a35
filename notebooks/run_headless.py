"""Run a notebook without a browser and print what it prints and shows, as text.

    python notebooks/run_headless.py notebooks/welcome.ipynb

The notebook runs in a kernel of its own, in its own folder; the file is not changed. A cell that
fails ends the run with its traceback, unless it is tagged `raises-exception`.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def text_of(output: nbformat.NotebookNode) -> str:
    """Return the text form of one output of a cell; empty if it has none."""
    match output.output_type:
        case "stream":
            return output.text
        case "execute_result" | "display_data":
            return output.data.get("text/plain", "")
        case "error":
            return f"{output.ename}: {output.evalue}"
    return ""


def print_outputs(notebook: nbformat.NotebookNode) -> None:
    """Print the text of every output, under the number of its cell."""
    for cell in notebook.cells:
        texts = [text_of(output).rstrip() for output in cell.get("outputs", [])]
        if any(texts):
            print(f"[{cell.execution_count}]", *filter(None, texts), sep="\n", end="\n\n")


def main() -> int:
    """Run the notebook named on the command line; return the exit status."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    path = parser.parse_args().notebook

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],  # it warns of every kernel that it is on plain TCP
        resources={"metadata": {"path": path.parent}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        print_outputs(notebook)
        print(error, file=sys.stderr)
        return 1
    print_outputs(notebook)
    return 0


if __name__ == "__main__":
    sys.exit(main())
