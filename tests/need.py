"""What a test needs of its machine beyond what `make test` installs.

A machine without it skips the test, with a reason that starts with "missing:". Where everything
has to be there, in continuous integration, `tests/conftest.py` makes a failure of that skip.
"""

import importlib.util
import shutil
from importlib import metadata

import pytest


def requires(
    *, program: str | None = None, module: str | None = None, distribution: str | None = None
) -> pytest.MarkDecorator:
    """Mark a test, or as `pytestmark` a file, that needs a program on the path or a module.

    What is installed and has no module to import is named by its distribution.

    ```python
    @requires(program="chromium")
    def test_page_draws_the_graph(): ...
    ```
    """
    absent = []
    if program is not None and shutil.which(program) is None:
        absent.append(program)
    if module is not None and importlib.util.find_spec(module) is None:
        absent.append(module)
    if distribution is not None and not any(metadata.distributions(name=distribution)):
        absent.append(distribution)
    return pytest.mark.skipif(bool(absent), reason=f"missing: {', '.join(absent)}")
