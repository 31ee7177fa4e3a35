"""Digests of definitions."""

import flowbook as fb
from flowbook.graph.redefinition.definition_digest import definition_digest


def test_digests_tell_output_ports_apart() -> None:
    parts = fb.split(fb.zeros([257]), 257)
    digests = [definition_digest(fb.identity(parts[i])) for i in (0, 0, 1, 256)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
