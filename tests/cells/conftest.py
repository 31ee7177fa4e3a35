"""A notebook without a front end: IPython's shell, given the ids that a front end gives."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import flowbook as fb
from flowbook.cells import install
from flowbook.graph.model.origin import site
from tests.notebook_shell import interactive_shell


class Notebook:
    """Runs cells; `output` is what the last one printed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.shell.user_ns["fb"] = fb
        self.tracker = install(self.shell)
        self.output = ""

    def run(
        self, cell_id: str | None, source: str, fails: bool = False, deleted: Sequence[str] = ()
    ) -> str:
        """Run a cell, check whether it failed, and return what it printed.

        Args:
            cell_id: its id.
            source: its text.
            fails: whether it ends in an error.
            deleted: the ids of the cells that the front end says were deleted.
        """
        meta = {"cellId": cell_id, "deletedCells": list(deleted)}
        with capture_output() as captured:
            result = self.shell.run_cell(
                source, store_history=True, cell_id=cell_id, cell_meta=meta
            )
        self.output = captured.stdout
        assert result.success is not fails, self.output
        assert "Error in callback" not in self.output, self.output
        return self.output

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    @property
    def graph(self) -> Any:
        return fb.get_default_graph()

    @property
    def names(self) -> list[str]:
        return [operation.name for operation in self.graph.operations]

    @property
    def notices(self) -> list[str]:
        """The lines of the last output that are Flowbook's."""
        return [line for line in self.output.splitlines() if line.startswith("flowbook: ")]


class Holder:
    """What a session is to the graph: something that holds values of variables."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.forgets = graph.values.forgets
        self.values = graph.values.held_by(self)
        self.values.update(v.op.key for v in graph.variables())

    def has_value(self, operation: Any) -> bool:
        return operation.key in self.values

    def extend(self) -> None:
        """Drop what was given up."""
        given_up = self.graph.values.forgotten_since(self.forgets)
        self.values.difference_update(operation.key for operation in given_up)
        self.forgets = self.graph.values.forgets


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    with interactive_shell() as shell:
        yield Notebook(shell)
    site.track(None, None)


@pytest.fixture
def holder_of() -> type[Holder]:
    """Makes something that holds values of all variables that a graph has now."""
    return Holder
