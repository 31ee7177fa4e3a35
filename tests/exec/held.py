"""What a session holds for a variable, for tests of how it is held."""

from typing import Any

import flowbook as fb
from flowbook.exec.resources.kinds import Definition
from flowbook.graph.model.resource_key import ResourceKey


def held(sess: fb.Session, variable: fb.Variable) -> Any:
    """The resource of a variable in a session, made if it is not there."""
    op = variable.op
    return sess._master.stores.of(op.key, Definition("variable", op.attributes))


def own_keys(sess: fb.Session) -> list[ResourceKey]:
    """The keys of the resources of a session's own, on all devices."""
    return [key for store in sess._master.stores._stores.values() for key, _ in store.held()]
