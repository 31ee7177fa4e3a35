"""Model parallelism: the layers of a deep LSTM on several devices, each busy with another word.

A device has some neighbouring layers, with their variables and the gradients by them. While the
upper layers read one word, the lower ones read the next already. So each word is a tensor of its
own, and what crosses is only what one layer tells the next.

`python -m examples.model_parallel model_parallel.svg` draws what is planned for three devices: when
each is busy, with the words in turn. It prints how much sooner a step ends than on one.

Source: white paper, section 7, "Model Parallel Training" and figure 8; Sutskever, Vinyals, Le,
"Sequence to sequence learning with neural networks", 2014, section 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import flowbook as fb
from examples import figures


def deep_lstm(words: Sequence[Any], units: int, layers: int, devices: Sequence[str]) -> list[Any]:
    """What the uppermost layer tells of each word.

    Args:
        words: one after the other, each [batch, width], float; the batch is known.
        units: the width of the layers.
        layers: how many there are.
        devices: such as `["cpu:0", "cpu:1", "cpu:2"]`. They divide the layers among themselves, the
            first has the lowest.

    Returns:
        For each word [batch, units].
    """
    for layer in range(layers):
        with fb.device(devices[layer * len(devices) // layers]), fb.name_scope(f"layer{layer}"):
            words = _lstm(words, units)
    return list(words)


def _lstm(words: Sequence[Any], units: int) -> list[Any]:
    batch, width = words[0].shape
    start = fb.initializers.glorot_uniform()([width + units, 4 * units])
    kernel, bias = (
        fb.Variable(start, name="kernel"),
        fb.Variable(fb.zeros([4 * units]), name="bias"),
    )
    zeros = fb.zeros([batch, units])
    outputs, _ = fb.nn.static_rnn(
        lambda word, state: fb.nn.lstm_cell(word, state, kernel, bias), words, (zeros, zeros)
    )
    return outputs


def main(words: int = 5, figure: Any = None) -> float:
    """Plan it on one device and on three; return in which part of the time three end."""
    cpus = ["cpu:0", "cpu:1", "cpu:2"]
    seconds = []
    for devices in (cpus[:1], cpus):
        with fb.Graph().as_default(), fb.Session(cpus=3) as sess:
            text = [fb.placeholder(fb.float32, [64, 128]) for _ in range(words)]
            plan = sess.explain(deep_lstm(text, 128, 3, devices), dict.fromkeys(text, (64, 128)))
            seconds.append(plan.seconds)
    figures.lanes(figure, plan, _word)
    print(f"three devices need {seconds[1] / seconds[0]:.0%} of the time of one")
    return seconds[1] / seconds[0]


def _word(name: str) -> int | None:
    """Which word an operation of a layer reads: its cells are numbered."""
    found = re.search(r"lstm_cell_?(\d*)", name)
    return int(found[1] or 0) if found else None


if __name__ == "__main__":
    figures.run(main)
