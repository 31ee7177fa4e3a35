"""Makes `benchmarks/.peers`, the environment in which the peers live.

They need versions of protobuf and NumPy that must not decide Flowbook's own.
"""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

from benchmarks.systems import PEERS, peers_python

_REQUIREMENTS = Path(__file__).parent / "peers.txt"


def install_peers() -> None:
    """Create the environment where it is missing and install `peers.txt` into it."""
    if not peers_python().exists():
        venv.create(PEERS, with_pip=True)
    subprocess.run(
        [str(peers_python()), "-m", "pip", "install", "-r", str(_REQUIREMENTS)], check=True
    )
