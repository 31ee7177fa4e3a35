"""What a session holds for a variable, for tests of how it is held."""

from typing import Any

import flowbook as fb
from flowbook.exec.resources.kinds import Definition


def held(sess: fb.Session, variable: fb.Variable) -> Any:
    """The resource of a variable in a session, made if it is not there."""
    op = variable.op
    return sess._master.store.of(op.key, Definition("variable", op.attributes))
