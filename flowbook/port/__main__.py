"""The command line: `python -m flowbook.port program.py`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

_DONE, _LEFT, _FAILED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Port a program or a notebook; say on stderr by line what is left to a person.

    Returns:
        0 if nothing is left, 1 if something is, 2 if it could not be ported.
    """
    parser = ArgumentParser("python -m flowbook.port", description=main.__doc__)
    parser.add_argument("program", type=Path, help="a .py file, or an .ipynb notebook")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", type=Path, help="where to write it; by default stdout")
    where.add_argument("--write", action="store_true", help="write it in place")
    asked = parser.parse_args(arguments)
    try:
        from flowbook.port.notebook import ported_notebook
        from flowbook.port.program import ported
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        print("flowbook.port needs libcst: pip install libcst", file=sys.stderr)
        return _FAILED
    try:
        text = asked.program.read_text(encoding="utf-8")
        port = ported_notebook if asked.program.suffix == ".ipynb" else ported
        result = port(text)
        output = asked.program if asked.write else asked.output
        if output is None:
            sys.stdout.write(result.text)
        else:
            output.write_text(result.text, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"{asked.program}: {error}", file=sys.stderr)
        return _FAILED
    for line, said in result.left:
        print(f"{asked.program}:{line}: {said}", file=sys.stderr)
    return _LEFT if result.left else _DONE


if __name__ == "__main__":
    sys.exit(main())
