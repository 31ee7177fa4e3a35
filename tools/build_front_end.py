"""Builds the front end into the wheel, where npm is there to do it: a hook of hatchling.

Without npm the wheel has the static forms only. An editable installation leaves it to `make`.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FrontEnd(BuildHookInterface):  # type: ignore[type-arg]
    """Runs `npm ci` and the build, unless the bundle is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel's files are collected."""
        root = Path(self.root)
        if version == "editable" or (root / "flowbook/widgets/static/flowbook.js").exists():
            return
        if shutil.which("npm") is None:
            self.app.display_warning("no npm: built without the live view of graphs")
            return
        for arguments in (["ci"], ["run", "build"]):
            subprocess.run(["npm", *arguments], cwd=root / "labextension", check=True)
