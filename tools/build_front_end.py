"""Sees to it that wheel and source archive contain the front end: a hook of hatchling.

That is the live views' bundle and the one that draws pictures of graphs, in the package, and
JupyterLab's extension, where JupyterLab looks for extensions. A package without them would look the
same and show less, so none is made. An editable installation leaves it all to `make`.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = (
    "flowbook/widgets/static/flowbook.js",
    "flowbook/widgets/static/picture.js",
    "labextension/prebuilt/package.json",
)


class FrontEnd(BuildHookInterface):  # type: ignore[type-arg]
    """Runs `npm ci` and the build, unless what they make is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the package's files are collected."""
        if version == "editable":
            return
        root = Path(self.root)
        if not all((root / path).exists() for path in BUILT):
            if shutil.which("npm") is None:
                self.app.abort(
                    "The live views are not built, and there is no npm to build them: "
                    "run `make front-end` where there is, then build again."
                )
            for arguments in (["ci"], ["run", "build"]):
                subprocess.run(["npm", *arguments], cwd=root / "labextension", check=True)
        if self.target_name == "wheel":
            extension = {"labextension/prebuilt": "share/jupyter/labextensions/flowbook"}
            build_data["shared_data"].update(extension)
