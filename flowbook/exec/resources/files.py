"""The resource behind operations that read and write whole files."""

from __future__ import annotations

import os

from flowbook.exec.checkpoints.folder import split
from flowbook.exec.files.opening import file_names, naming, opened
from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.touch import FILES


class Files:
    """Reads and writes files; it keeps nothing."""

    def read(self, path: bytes) -> bytes:
        """What is in a file."""
        with opened(os.fsdecode(path)) as file:
            return file.read()

    def write(self, path: bytes, content: bytes) -> None:
        """Write a file, whole or not at all, and the folders that lead to it."""
        text = os.fsdecode(path)
        folder, name = split(text)
        with naming(text, "written"):
            folder.create()
            with folder.written(name) as file:
                file.write(content)

    def matching(self, pattern: bytes) -> list[bytes]:
        """The names of the files that a pattern describes, sorted."""
        return [os.fsencode(name) for name in file_names(os.fsdecode(pattern))]


@makes(FILES)
def _files(birth: Birth) -> Files:
    return Files()
