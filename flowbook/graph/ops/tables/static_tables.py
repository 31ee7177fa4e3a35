"""Look-up tables that never change: what fills them is known when a graph is built.

Such a table is constants, and a look-up a search among them: it needs no initialisation, and is
stored with the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.building.scopes import init_scope, name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.dtypes import INTS, DType, as_dtype, int64, string
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.tables.found import found, sorted_table
from flowbook.graph.ops.text.string_numbers import as_string, to_hash_bucket_fast
from flowbook.graph.storing.files import as_path
from flowbook.graph.storing.text_columns import LINE_NUMBER, WHOLE_LINE, column, lines_of

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]

Array = np.ndarray[Any, Any]

KEYS = (*INTS, string)


class TextFileIndex:
    """What stands for a column of a file in a `TextFileInitializer`.

    Attributes:
        WHOLE_LINE: all of a line.
        LINE_NUMBER: the number of a line, from 0 on.
    """

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class KeyValueTensorInitializer:
    """Keys and values that fill a table.

    Args:
        keys: integers or strings: anything array-like, or a tensor whose value the graph knows.
        values: likewise, of any dtype, one for each key.
        key_dtype: that of the keys; by default as they are given.
        value_dtype: that of the values; by default as they are given.

    Attributes:
        keys: [n], an array.
        values: [n], an array.

    Raises:
        InvalidTypeError: if only a run knows them, or keys are neither integers nor strings.
        InvalidArgumentError: if there are not as many values as keys.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None
    ) -> None:
        self.keys = _known(keys, key_dtype)
        self.values = _known(values, value_dtype)
        require_key(self.key_dtype)
        if len(self.keys) != len(self.values):
            raise InvalidArgumentError(
                f"{len(self.values)} values do not fit {len(self.keys)} keys"
            )

    @property
    def key_dtype(self) -> DType:
        """That of the keys."""
        return dtype_of(self.keys)

    @property
    def value_dtype(self) -> DType:
        """That of the values."""
        return dtype_of(self.values)


class TextFileInitializer(KeyValueTensorInitializer):
    r"""Two columns of a file of text that fill a table; it is read at once.

    Args:
        filename: the file's path.
        key_dtype: that of the keys.
        key_index: the column of the keys: from 0 on, or what a `TextFileIndex` has.
        value_dtype: that of the values.
        value_index: the column of the values.
        vocab_size: how many lines are taken; by default all.
        delimiter: what stands between two columns: one character.
        value_index_offset: the number of the first line.

    Attributes:
        keys: [n], an array.
        values: [n], an array.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if a line has no such column, or something else there, or there are
            fewer lines.

    >>> import pathlib, tempfile
    >>> import flowbook as fb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "capitals.txt")
    ...     _ = path.write_text("France,Paris\nPeru,Lima\n")
    ...     table = fb.lookup.StaticHashTable(
    ...         fb.lookup.TextFileInitializer(path, fb.string, 0, fb.string, 1, delimiter=","),
    ...         default_value="?",
    ...     )
    >>> with fb.Session() as sess:
    ...     print(sess.run(table.lookup(["Peru", "Chad"])))
    [b'Lima' b'?']
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        value_index_offset: int = 0,
    ) -> None:
        path = as_path(_text(filename))
        lines = lines_of(path, _counted_lines(vocab_size))
        if len(delimiter) != 1:
            raise InvalidArgumentError(f"a delimiter is one character, not {delimiter!r}")
        columns = []
        for index, dtype in ((key_index, key_dtype), (value_index, value_dtype)):
            wanted = as_dtype(dtype)
            if index == LINE_NUMBER and wanted not in INTS:
                raise InvalidTypeError(f"the number of a line is no {wanted.name}")
            if index < WHOLE_LINE:
                raise InvalidArgumentError(f"there is no column {index}")
            between = delimiter.encode()
            columns.append(column(lines, index, between, wanted, path, value_index_offset))
        super().__init__(*columns)


def _counted_lines(vocab_size: int | None) -> int | None:
    if vocab_size is not None and vocab_size < 1:
        raise InvalidArgumentError(f"vocab_size is at least 1, not {vocab_size}")
    return vocab_size


def _text(filename: Any) -> Any:
    """A path; that which a tensor is, as it may be in TensorFlow."""
    known = constant_value(filename) if isinstance(filename, Tensor) else None
    return filename if known is None else known.item()


def _known(values: Any, dtype: Any) -> Array:
    """What is known of values, as a vector that is nobody else's."""
    if isinstance(values, Tensor):
        known = constant_value(values)
        if known is None:
            raise InvalidTypeError(
                f"a table that never changes holds what is known now, and not {values!r}",
                hint="fb.lookup.MutableHashTable takes what a run computes",
            )
        values = known
    array = to_array(values, None if dtype is None else as_dtype(dtype))
    return np.array(array).ravel()


def require_key(dtype: DType) -> None:
    """See that keys may be of a dtype; InvalidTypeError if not."""
    if dtype not in KEYS:
        raise InvalidTypeError(f"keys are integers or strings, not {dtype.name}")


def keys_of(keys: Any, dtype: DType) -> tuple[Tensor, SparseTensor | None]:
    """Keys as a tensor; and the sparse tensor whose elements they are, if they are such."""
    if isinstance(keys, SparseTensor):
        return convert_to_tensor(keys.values, dtype), keys
    return convert_to_tensor(keys, dtype), None


def in_place_of(sparse: SparseTensor | None, values: Tensor) -> Any:
    """Values, as they were asked for: in the places of a sparse tensor's elements."""
    if sparse is None:
        return values
    return SparseTensor(sparse.indices, values, sparse.dense_shape)


def uninitialized(begin: str) -> dict[str, str]:
    """What says of attributes of TensorFlow's tables that these are so from the beginning."""
    instead = f"nothing in its place: the table is {begin} from the beginning"
    return dict.fromkeys(("init", "initializer"), instead)


class _StaticTable:
    """What both kinds have in common."""

    _known: Tensor
    _values: Tensor
    name: str

    def _fill(self, initializer: KeyValueTensorInitializer, default: str, name: str | None) -> None:
        if not isinstance(initializer, KeyValueTensorInitializer):
            raise InvalidTypeError(
                f"a table is filled by an initializer, not {initializer!r:.80}",
                hint="fb.lookup.KeyValueTensorInitializer(keys, values)",
            )
        columns = sorted_table(name or default, initializer.keys, initializer.values)
        with init_scope(), name_scope(name or default) as scope:
            self.name = scope.rstrip("/")
            self._known = constant(columns[0], initializer.key_dtype, name="keys")
            self._values = constant(columns[1], initializer.value_dtype, name="values")

    @property
    def key_dtype(self) -> DType:
        """That of the keys."""
        return self._known.dtype

    @property
    def value_dtype(self) -> DType:
        """That of the values."""
        return self._values.dtype

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, as a class of its own says."""
        raise NotImplementedError


@elsewhere({**uninitialized("full"), "export": "the keys and values that it was made of"})
class StaticHashTable(_StaticTable):
    """A table that never changes.

    Args:
        initializer: what fills it: a `KeyValueTensorInitializer` or a `TextFileInitializer`.
        default_value: the value of a key that is not in it.
        name: the name scope; by default "hash_table".

    Attributes:
        default_value: as given, a tensor.
        name: the name scope.

    Raises:
        InvalidTypeError: if the default is not of the values' dtype.
        InvalidArgumentError: if a key has two values.

    >>> import flowbook as fb
    >>> prices = fb.lookup.StaticHashTable(
    ...     fb.lookup.KeyValueTensorInitializer(["tea", "milk"], [2.5, 1.0]), default_value=-1.0
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(prices.lookup(["milk", "beer", "tea"])))
    [ 1.  -1.   2.5]
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any, name: str | None = None
    ) -> None:
        self._fill(initializer, "hash_table", name)
        with init_scope(), name_scope(f"{self.name}/"):
            given = convert_to_tensor(default_value, self.value_dtype, name="default_value")
        if given.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"a default is a scalar, not of shape {given.shape}")
        self.default_value: Tensor = given

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are: an int64 scalar."""
        with self._known.graph.as_default():
            return constant(self._known.shape[0], int64, name=name or "size")

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor of any shape, or a SparseTensor.
            name: the name scope; by default "lookup".

        Returns:
            A tensor of that shape, or a SparseTensor with the values in the keys' places.

        Raises:
            InvalidTypeError: if the keys are of another dtype.
        """
        return _looked_up(self._known, keys, self._values, self.default_value, name=name)


@composed("lookup")
def _looked_up(known: Tensor, keys: Any, values: Tensor, default: Tensor, name: Any = None) -> Any:
    wanted, sparse = keys_of(keys, known.dtype)
    return in_place_of(sparse, found(known, values, wanted, default, name))


@elsewhere(uninitialized("full"))
class StaticVocabularyTable(_StaticTable):
    """Numbers of words: those of a vocabulary, and beyond them buckets for all others.

    Args:
        initializer: what gives words their numbers, which are int64, from 0 on; None if there are
            buckets alone.
        num_oov_buckets: how many buckets there are for words that are not in the vocabulary: such a
            word has the number of its bucket, by its hash, as TensorFlow has it.
        lookup_key_dtype: that of the keys: string, or one of integers; by default the
            initializer's.
        name: the name scope; by default "hash_table".

    Attributes:
        name: the name scope.

    Raises:
        InvalidTypeError: if the values are not int64, or the dtypes of keys differ in kind.
        InvalidArgumentError: if there is no bucket, or a word has two numbers.

    >>> import flowbook as fb
    >>> words = fb.lookup.StaticVocabularyTable(
    ...     fb.lookup.KeyValueTensorInitializer(["the", "a"], [0, 1], value_dtype=fb.int64), 3
    ... )
    >>> with fb.Session() as sess:
    ...     print(*sess.run([words.lookup(["a", "the", "zebra"]), words.size()]))
    [1 0 4] 5
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets < 1:
            raise InvalidArgumentError(
                f"num_oov_buckets is at least 1, not {num_oov_buckets}",
                hint="fb.lookup.StaticHashTable has a default instead of buckets",
            )
        if initializer is None:
            given = string if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
            initializer = KeyValueTensorInitializer([], [], given, int64)
        self._fill(initializer, "hash_table", name)
        if self.value_dtype is not int64:
            raise InvalidTypeError(f"numbers are int64, not {self.value_dtype.name}")
        wanted = self.key_dtype if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
        if (wanted is string) != (self.key_dtype is string) or wanted not in KEYS:
            raise InvalidTypeError(
                f"keys of {wanted.name} are not looked up in a vocabulary of {self.key_dtype.name}"
            )
        self._asked = wanted
        self._buckets = num_oov_buckets

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are, those of buckets too: an int64 scalar."""
        with self._known.graph.as_default():
            return constant(self._size(), int64, name=name or "size")

    def _size(self) -> int:
        return int(self._known.shape[0] or 0) + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of words.

        Args:
            keys: a tensor of any shape, or a SparseTensor.
            name: the name scope; by default "lookup".

        Returns:
            An int64 tensor of that shape, or a SparseTensor with the numbers in the keys' places.

        Raises:
            InvalidTypeError: if the keys are of another dtype.
        """
        first = self._size() - self._buckets
        return _numbered(
            self._known, keys, self._values, self._asked, first, self._buckets, name=name
        )


@composed("lookup")
def _numbered(
    known: Tensor,
    keys: Any,
    values: Tensor,
    asked: DType,
    first: int,
    buckets: int,
    name: Any = None,
) -> Any:
    """Numbers of words: of those that are not known those of buckets, from `first` on."""
    wanted, sparse = keys_of(keys, asked)
    wanted = wanted if asked is known.dtype else cast(wanted, known.dtype)
    text = wanted if wanted.dtype is string else as_string(wanted)
    others = to_hash_bucket_fast(text, buckets) + first
    return in_place_of(sparse, found(known, values, wanted, others, name))


def _numbers(
    initializer: KeyValueTensorInitializer, buckets: int, default: Any, name: str | None
) -> StaticHashTable | StaticVocabularyTable:
    if buckets < 0:
        raise InvalidArgumentError(f"num_oov_buckets is not negative: {buckets}")
    if buckets:
        return StaticVocabularyTable(initializer, buckets, name=name)
    return StaticHashTable(initializer, default, name=name)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: Any = -1,
    dtype: Any = None,
    name: str | None = None,
) -> StaticHashTable | StaticVocabularyTable:
    """A table that gives words their places in a vocabulary.

    Args:
        vocabulary_list: the words, a vector of strings or integers, each once.
        num_oov_buckets: how many buckets there are for other words; see `StaticVocabularyTable`.
        default_value: the place of other words, if there are no buckets.
        dtype: that of the words; by default as they are given.
        name: the name scope; by default "hash_table".

    Returns:
        A table from words to int64.

    Raises:
        InvalidArgumentError: if there are no words, or one is there twice.

    >>> import flowbook as fb
    >>> table = fb.lookup.index_table_from_tensor(["emerson", "lake", "palmer"])
    >>> with fb.Session() as sess:
    ...     print(sess.run(table.lookup(["lake", "and", "palmer"])))
    [ 1 -1  2]
    """
    words = _known(vocabulary_list, dtype)
    if not len(words):
        raise InvalidArgumentError("a vocabulary has at least one word")
    places = np.arange(len(words), dtype=np.int64)
    initializer = KeyValueTensorInitializer(words, places)
    return _numbers(initializer, num_oov_buckets, default_value, name)


def index_table_from_file(
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = -1,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = WHOLE_LINE,
    value_column_index: int = LINE_NUMBER,
    delimiter: str = "\t",
) -> StaticHashTable | StaticVocabularyTable:
    """A table that gives words their lines in a file, which is read at once.

    Args:
        vocabulary_file: the file's path.
        num_oov_buckets: how many buckets there are for other words; see `StaticVocabularyTable`.
        vocab_size: how many lines are taken; by default all.
        default_value: the number of other words, if there are no buckets.
        key_dtype: that of the words: string, or one of integers.
        name: the name scope; by default "hash_table".
        key_column_index: the column of the words; by default all of a line.
        value_column_index: the column of their numbers; by default those of the lines, from 0 on.
        delimiter: what stands between two columns.

    Returns:
        A table from words to int64.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if a word has two numbers, or there are fewer lines.
    """
    initializer = TextFileInitializer(
        vocabulary_file,
        key_dtype,
        key_column_index,
        int64,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return _numbers(initializer, num_oov_buckets, default_value, name)


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table that gives the words of a vocabulary for their places.

    Args:
        vocabulary_list: the words, a vector of strings.
        default_value: what stands for the word of any other place.
        name: the name scope; by default "hash_table".

    Returns:
        A table from int64 to strings.
    """
    words = _known(vocabulary_list, string)
    places = np.arange(len(words), dtype=np.int64)
    return StaticHashTable(KeyValueTensorInitializer(places, words), default_value, name)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = LINE_NUMBER,
    value_column_index: int = WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table that gives the lines of a file for their numbers; the file is read at once.

    Args:
        vocabulary_file: the file's path.
        vocab_size: how many lines are taken; by default all.
        default_value: what stands for the word of any other number.
        name: the name scope; by default "hash_table".
        key_column_index: the column of the numbers; by default those of the lines, from 0 on.
        value_column_index: the column of the words; by default all of a line.
        delimiter: what stands between two columns.

    Returns:
        A table from int64 to strings.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if there are fewer lines.
    """
    initializer = TextFileInitializer(
        vocabulary_file,
        int64,
        key_column_index,
        string,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return StaticHashTable(initializer, default_value, name)
