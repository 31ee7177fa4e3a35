"""What a package index shows of Flowbook: a hook of hatchling.

An index has no folder beside the text: pictures there would be torn, and links lead nowhere. The
description is the README with words in their places: a picture's description, a link's text.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Description(MetadataHookInterface):
    """Makes the description from the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": in_words(readme)}


def in_words(text: str) -> str:
    """Return a text of Markdown without what lies in files beside it."""
    text = re.sub(r'<picture>.*?alt="([^"]*)".*?</picture>', r"*\1*", text, flags=re.DOTALL)
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"*\1*", text)
    return re.sub(r"\[([^\]]*)\]\((?!https://)[^)]*\)", r"\1", text)
