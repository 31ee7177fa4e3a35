"""A real kernel, which gets cells with their ids in the requests' metadata, as from JupyterLab."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import start_new_kernel

# What takes a kernel longer never ends.
SECONDS = 120

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SHOWN = ("text/plain", "text/html", "image/svg+xml")


class Kernel:
    """Executes cells, and collects the text of their outputs.

    Args:
        client: a client of a running kernel.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def messages(
        self, cell_id: str | None, source: str, deleted: Sequence[str] = (), counts: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Run a cell to its end: the types and contents of what the kernel says meanwhile.

        Args:
            cell_id: the cell's id; None for none.
            source: its text.
            deleted: the ids of the cells that the front end says were deleted.
            counts: whether it counts as a cell that ran.
        """
        content = {
            "code": source,
            "silent": False,
            "store_history": counts,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        metadata = {} if cell_id is None else {"cellId": cell_id, "deletedCells": list(deleted)}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        while True:
            reply = self.client.get_iopub_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, content = reply["msg_type"], reply["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            yield kind, content

    def run(self, cell_id: str | None, source: str, deleted: Sequence[str] = ()) -> str:
        """Run a cell to its end, and return what it showed."""
        text = []
        for kind, content in self.messages(cell_id, source, deleted):
            if kind == "stream":
                text.append(content["text"])
            elif kind in ("execute_result", "display_data"):
                text.append("\n".join(content["data"].get(m, "") for m in SHOWN))
            elif kind == "error":
                text.append(COLOURS.sub("", "\n".join(content["traceback"])))
        return "".join(text).strip()


@contextmanager
def running_kernel() -> Iterator[Kernel]:
    """A kernel of its own."""
    manager, client = start_new_kernel(
        startup_timeout=SECONDS, kernel_name="python3", extra_arguments=["--log-level=ERROR"]
    )
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
