"""The CPU device: large arrays take the memory that earlier ones left behind."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
import flowbook as fb

x = fb.placeholder(fb.float32, [1000, 1000])
mean_and_variance = list(fb.nn.moments(x, 0))
session = fb.Session()
feeds = {x: np.ones([1000, 1000], np.float32)}

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    session.run(mean_and_variance, feeds)
before = faults()
for _ in range(10):
    session.run(mean_and_variance, feeds)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library's own policy")
def test_steps_that_repeat_need_no_new_pages_for_their_temporaries():
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    # A step has several arrays of 4 MB, of 1024 pages each.
    assert int(found.stdout) < 1000
