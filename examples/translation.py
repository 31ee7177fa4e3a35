"""Translation with attention: numbers in words become digits, written one by one.

An encoder reads "seven thousand and five" from both ends. A decoder writes "7005": at each step it
looks at all words, each as much as it matters now. What it writes is found in the graph, by a loop
that ends when all translations have ended: greedily, by drawing, or by beam search.

`python -m examples.translation` trains it and translates numbers that it has never seen.

Source: Luong, Pham, Manning, "Effective approaches to attention-based neural machine translation",
2015; its "general" attention and input feeding (sections 3.1 and 3.3). The encoder: Bahdanau, Cho,
Bengio, "Neural machine translation by jointly learning to align and translate", 2014.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import flowbook as fb

TEXT = """
one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand and
"""
# A word is known by its place; what is no word, which fills up a source, by 0.
WORDS = ["", *TEXT.split()]
# A digit is known by itself. `END` ends a translation, and fills up shorter ones.
END = 10
SYMBOLS = END + 1
# What the first digit follows; nobody writes it.
START = SYMBOLS
# Six digits and the end.
LONGEST = 7


def in_words(number: int) -> list[str]:
    """How a number below a million is said; nothing for 0."""
    if number < 20:
        return [WORDS[number]] if number else []
    if number < 100:
        tens, rest = divmod(number, 10)
        return [WORDS[18 + tens], *in_words(rest)]
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    whole, rest = divmod(number, size)
    joint = ["and"] if 0 < rest < 100 else []
    return [*in_words(whole), name, *joint, *in_words(rest)]


def batch_of(numbers: Any) -> tuple[Any, Any]:
    """Numbers in words and in digits, [batch, longest] each, filled up with 0 and `END`."""
    sources = [[WORDS.index(word) for word in in_words(number)] for number in numbers]
    targets = [[*map(int, str(number)), END] for number in numbers]

    def filled(rows: list[list[int]], filling: int) -> Any:
        longest = max(map(len, rows))
        return np.array([row + [filling] * (longest - len(row)) for row in rows], np.int32)

    return filled(sources, 0), filled(targets, END)


def drawn(count: int, rng: np.random.Generator, is_held_out: bool) -> Any:
    """Numbers of up to six digits, as many of each length: multiples of 11 are held out."""
    if is_held_out:
        return 11 * rng.integers(1, 10 ** rng.integers(2, 7, count) // 11 + 1)
    numbers = rng.integers(1, 10 ** rng.integers(1, 7, count))
    return numbers - (numbers % 11 == 0)


def in_digits(symbols: Any) -> list[str]:
    """Translations [batch, steps] as text."""
    return ["".join(str(symbol) for symbol in row if symbol != END) for row in symbols]


class Written(NamedTuple):
    """Translations.

    Attributes:
        symbols: [batch, steps], or of a beam [batch, width, steps], the best first.
        scores: [batch], or [batch, width]: the logarithms of their probabilities, in a beam search
            over the penalties of their lengths.
    """

    symbols: Any
    scores: Any


class Translator:
    """The model's variables, and what it makes of sources."""

    def __init__(self, source: Any, width: int = 32, units: int = 64) -> None:
        """Make the variables, and read the sources.

        Args:
            source: [batch, words], int32, filled up with zeros.
            width: the width of the embeddings.
            units: the width of the states.
        """
        self.units, self.count = units, fb.shape(source)[0]
        is_word = fb.greater(source, 0)
        self.mask = is_word[:, None]
        zeros = fb.zeros([self.count, units])
        outputs, states = fb.nn.bidirectional_dynamic_rnn(
            fb.layers.gru_cell(units, name="forwards"),
            fb.layers.gru_cell(units, name="backwards"),
            fb.layers.embedding(source, len(WORDS), width, name="words"),
            zeros,
            zeros,
            sequence_length=fb.reduce_sum(fb.cast(is_word, fb.int32), 1),
        )
        self.memory = fb.concat(outputs, 2)
        self.keys = fb.layers.dense(self.memory, units, use_bias=False, name="keys")
        first = fb.layers.dense(fb.concat(states, 1), units, fb.tanh, name="first")
        self.first_state = (first, zeros)
        self.embeddings = _variable([SYMBOLS + 1, width], "embeddings")
        self.cell = fb.layers.gru_cell(units, name="decoder")
        self.joining = _variable([3 * units, units], "joining")
        self.kernel = _variable([units, SYMBOLS], "kernel")

    def step(self, last: Any, state: Any) -> tuple[Any, Any]:
        """A cell: the output after the symbols `last`, [hypotheses], and the next state.

        There are equally many hypotheses of each source, one source's after the other's.
        """
        hidden, output = state
        x = fb.concat([fb.nn.embedding_lookup(self.embeddings, last), output], 1)
        _, hidden = self.cell(x, hidden)
        queries = fb.reshape(hidden, [self.count, -1, self.units])
        seen = fb.nn.scaled_dot_product_attention(
            queries, self.keys, self.memory, self.mask, scale=1.0
        )
        seen = fb.reshape(seen, [-1, 2 * self.units])
        output = fb.tanh(fb.matmul(fb.concat([seen, hidden], 1), self.joining))
        return output, (hidden, output)

    def loss(self, target: Any) -> Any:
        """The mean cross entropy of a symbol, when those before it are right.

        Args:
            target: [batch, steps], int32, each ended and filled up by `END`.
        """
        last = fb.concat([fb.fill([self.count, 1], START), target[:, :-1]], 1)
        outputs, _ = fb.nn.dynamic_rnn(self.step, last, self.first_state)
        losses = fb.nn.sparse_softmax_cross_entropy_with_logits(
            labels=target, logits=fb.tensordot(outputs, self.kernel, 1)
        )
        counts = fb.cast(fb.not_equal(last, END), fb.float32)
        return fb.reduce_sum(losses * counts) / fb.reduce_sum(counts)

    def _following(self, last: Any, state: Any) -> tuple[Any, Any]:
        """How likely each symbol is, as logarithms [hypotheses, symbols], and the next state."""
        output, state = self.step(last, state)
        return fb.nn.log_softmax(fb.matmul(output, self.kernel)), state

    def greedy(self, longest: int = LONGEST) -> Written:
        """Write the likeliest symbol at each step, until the end or `longest` of them."""
        return self._chosen(lambda likely, step: fb.argmax(likely, 1, fb.int32), longest)

    def sampled(self, seed: Any, temperature: Any = 1.0, longest: int = LONGEST) -> Written:
        """Draw each symbol.

        Args:
            seed: an int32 scalar: the same one draws the same.
            temperature: below 1 likely symbols become more likely, above 1 less.
            longest: after how many symbols a translation ends in any case.
        """

        def draw(likely: Any, step: Any) -> Any:
            seeds = fb.stack([seed, step])
            return fb.stateless_random_categorical(likely / temperature, 1, seeds, fb.int32)[:, 0]

        return self._chosen(draw, longest)

    def _chosen(self, choose: Callable[[Any, Any], Any], longest: int) -> Written:
        """Write what is chosen at each step."""

        def body(last: Any, step: Any, state: Any, scores: Any, written: Any) -> Any:
            is_over = fb.equal(last, END)
            likely, state = self._following(last, state)
            last = fb.where(is_over, END, choose(likely, step))
            scores += fb.where(is_over, 0.0, fb.gather(likely, last, batch_dims=1))
            return last, step + 1, state, scores, written.write(step, last)

        start = (
            fb.fill([self.count], START),
            0,
            self.first_state,
            fb.zeros([self.count]),
            fb.TensorArray(fb.int32, dynamic_size=True),
        )
        *_, scores, written = fb.while_loop(_is_unfinished, body, start, maximum_iterations=longest)
        return Written(fb.transpose(written.stack()), scores)

    def beam_search(self, width: int, alpha: float = 0.6, longest: int = LONGEST) -> Written:
        """Follow the best hypotheses, until all of them have ended or are `longest`.

        Args:
            width: how many of each source there are.
            alpha: how much long ones are preferred. A score is the logarithm of the probability
                over `((5 + length) / 6) ** alpha` (Wu et al., "Google's neural machine translation
                system", 2016, section 7); the end counts as a symbol.
            longest: after how many symbols a translation ends in any case.
        """
        # What is over goes on in one way only, and stays as likely as it was.
        nothing = fb.log(fb.one_hot(END, SYMBOLS))

        def body(last: Any, state: Any, totals: Any, lengths: Any, _: Any, written: Any) -> Any:
            is_over = fb.equal(last, END)
            likely, state = self._following(last, state)
            totals = totals[:, None] + fb.where(is_over[:, None], nothing, likely)
            lengths += fb.where(is_over, 0.0, 1.0)
            scores = totals / ((5.0 + lengths[:, None]) / 6.0) ** alpha
            scores, best = fb.nn.top_k(fb.reshape(scores, [self.count, -1]), width)
            begun = width * fb.range(self.count)[:, None] + best // SYMBOLS
            begun, last = fb.reshape(begun, [-1]), fb.reshape(best % SYMBOLS, [-1])
            return (
                last,
                tuple(fb.gather(part, begun) for part in state),
                fb.gather_nd(totals, fb.stack([begun, last], 1)),
                fb.gather(lengths, begun),
                scores,
                fb.concat([fb.gather(written, begun), last[:, None]], 1),
            )

        hypotheses = self.count * width
        # All begin alike, so that only the first of each source counts.
        totals = fb.tile(fb.log(fb.one_hot(0, width)), [self.count])
        start = (
            fb.fill([hypotheses], START),
            tuple(fb.repeat(part, width, 0) for part in self.first_state),
            totals,
            fb.zeros([hypotheses]),
            fb.reshape(totals, [self.count, width]),
            fb.zeros([hypotheses, 0], fb.int32),
        )
        *_, scores, written = fb.while_loop(
            _is_unfinished,
            body,
            start,
            shape_invariants=(*[None] * 5, [None, None]),
            maximum_iterations=longest,
        )
        return Written(fb.reshape(written, [self.count, width, -1]), scores)


def _is_unfinished(last: Any, *_: Any) -> Any:
    return fb.reduce_any(fb.not_equal(last, END))


def _variable(shape: list[int], name: str) -> Any:
    return fb.Variable(fb.initializers.glorot_uniform()(shape), name=name)


def training_step(loss: Any, steps: int, rate: float = 5e-3) -> Any:
    """Adam, with a rate that falls to nothing in so many steps."""
    done = fb.train.get_or_create_global_step()
    optimizer = fb.train.AdamOptimizer(fb.train.cosine_decay(rate, done, steps))
    return optimizer.minimize(loss, done)


def main(steps: int = 600, batch: int = 64, seed: int = 1) -> dict[str, float]:
    """Train, and tell for each way of writing how many held-out numbers it translates right."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    source = fb.placeholder(fb.int32, [None, None], name="source")
    target = fb.placeholder(fb.int32, [None, None], name="target")
    model = Translator(source)
    loss = model.loss(target)
    step = training_step(loss, steps)
    ways = {
        "greedy": model.greedy().symbols,
        "sampled": model.sampled(seed).symbols,
        "beam search": model.beam_search(4).symbols[:, 0],
    }
    right = {}
    start = time.perf_counter()
    with fb.Session() as sess:
        for done in range(1, steps + 1):
            sources, targets = batch_of(drawn(batch, rng, is_held_out=False))
            found, _ = sess.run([loss, step], {source: sources, target: targets})
            if done % 100 == 0:
                print(f"{done} steps, {time.perf_counter() - start:.0f} s: loss {found:.4f}")
        numbers = np.unique(drawn(1000, rng, is_held_out=True))
        sources, _ = batch_of(numbers)
        for way, symbols in ways.items():
            digits = in_digits(sess.run(symbols, {source: sources}))
            right[way] = float(np.mean([a == str(b) for a, b in zip(digits, numbers, strict=True)]))
            print(f"{way}: {right[way]:.1%} of {len(numbers)} are right")
    return right


if __name__ == "__main__":
    main()
