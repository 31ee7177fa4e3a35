"""Text: shapes, sessions, bytes of all kinds, errors."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.numerics.hashing import fingerprint, siphash
from tests.interpreter import evaluate

strings = fb.strings
Error = fb.errors.InvalidArgumentError


def text(tensor: fb.Tensor) -> Any:
    return evaluate(tensor).tolist()


def test_join() -> None:
    assert text(strings.join(["a", ["b", "c"], [["d"], ["e"]]])) == [
        [b"abd", b"acd"],
        [b"abe", b"ace"],
    ]
    assert text(strings.join(["é"], "-")) == "é".encode()
    assert strings.join([fb.placeholder(fb.string, [None]), "x"]).shape == [None]
    nul = text(strings.join([["a\0", "\0"], "b\0"]))
    assert nul == [b"a\0b\0", b"\0b\0"]


def test_reduce_join_of_nothing() -> None:
    x = fb.zeros([0, 2], fb.int32)
    empty = strings.as_string(x)
    assert text(strings.reduce_join(empty, 0)) == [b"", b""]
    assert text(strings.reduce_join(empty)) == b""
    assert text(strings.reduce_join("a")) == b"a"


def test_unsigned_numbers_show_no_sign() -> None:
    for fill in (" ", "+"):
        assert text(strings.as_string(np.uint8(7), fill=fill)) == b"7"
        assert text(strings.as_string(np.int8(7), fill=fill)) == fill.encode() + b"7"


def test_equality_and_choice_work() -> None:
    words = fb.constant(["a", "b"])
    assert text(fb.equal(words, "b")) == [False, True]
    assert text(fb.not_equal(words, "b")) == [True, False]
    assert text(fb.where(fb.equal(words, "b"), strings.upper(words), words)) == [b"a", b"B"]
    assert text(fb.gather(words, [1, 1, 0])) == [b"b", b"b", b"a"]


def test_parts() -> None:
    assert text(strings.substr("hello", [0, 5, -5, 2], [9, 1, 2, 0])) == [b"hello", b"", b"he", b""]
    # A character that is cut off still counts, at its first byte.
    assert text(strings.length(b"\xc3\xa9\xe2\x82", unit="UTF8_CHAR")) == 2
    for pos in (6, -6):
        with pytest.raises(Error, match=f"position {pos} lies outside of b'hello'"):
            text(strings.substr("hello", pos, 1))
    with pytest.raises(Error, match="3 characters"):
        text(strings.substr("äöü", 4, 1, unit="UTF8_CHAR"))
    with pytest.raises(Error, match="not negative"):
        text(strings.substr("hello", 1, -1))
    with pytest.raises(Error, match="none is empty"):
        text(strings.split("hello", ["l", ""]).values)
    with pytest.raises(Error, match="'maxsplit' counts"):
        text(strings.split("hello", ["l", "e"], 1).values)


def test_letters_beyond_ascii() -> None:
    assert text(strings.upper("aé")) == b"A\xc3\xa9"
    assert text(strings.upper("aé", encoding="utf-8")) == "AÉ".encode()
    assert text(strings.lower(b"A\xff", encoding="utf-8")) == b"a\xff"


def test_split() -> None:
    parts = strings.split(["a,b,", "", "c"], ",")
    assert text(parts.values) == [b"a", b"b", b"", b"", b"c"]
    assert text(parts.indices) == [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]]
    assert text(parts.dense_shape) == [3, 3]
    for empty in ([], [""]):
        none = strings.split(fb.constant(np.array(empty, object), fb.string))
        assert [v.shape for v in evaluate([none.indices, none.values, none.dense_shape])] == [
            (0, 2),
            (0,),
            (2,),
        ]
    assert text(strings.split("one two").values) == [b"one", b"two"]
    sep = fb.placeholder(fb.string, [])
    with fb.Session() as sess:
        assert sess.run(strings.split("a-b", sep).values, {sep: "-"}).tolist() == [b"a", b"b"]


def test_split_at_several() -> None:
    lines = ["a.b,c", "", ",;", "a;.b"]
    parts = strings.split(lines, [",", ";.", "."])
    assert text(parts.values) == [b"a", b"b", b"c", b"", b";", b"a", b"b"]
    assert text(parts.dense_shape) == [4, 3]
    parts = strings.split(lines, [",", ";"], skip_empty=True)
    assert text(parts.values) == [b"a.b", b"c", b"a", b".b"]
    assert text(parts.indices) == [[0, 0], [0, 1], [3, 0], [3, 1]]
    assert text(strings.split(" a  b ", " ", skip_empty=True).values) == [b"a", b"b"]
    assert text(strings.split(["ab", "", "é"], []).values) == [b"a", b"b", b"\xc3", b"\xa9"]


def test_patterns_in_the_run() -> None:
    pattern, rewrite = fb.placeholder(fb.string, []), fb.placeholder(fb.string, [])
    replaced = strings.regex_replace(["aa", "b"], pattern, rewrite)
    with fb.Session() as sess:

        def run(p: str, r: str) -> list[bytes]:
            return sess.run(replaced, {pattern: p, rewrite: r}).tolist()

        assert run("a", "x") == [b"xx", b"b"]
        assert run("(b)|(a)", r"[\1]") == [b"[][]", b"[b]"]
        with pytest.raises(Error, match="no regular expression"):
            run("(", "x")
        with pytest.raises(Error, match="names group 2 of 1"):
            run("(a)", r"\2")
    assert text(strings.regex_full_match(["ab", "abc", "ab\n"], "a.")) == [True, False, False]


def test_patterns_match_whole_characters() -> None:
    assert text(strings.regex_full_match("äb", ".b")) is True
    assert text(strings.regex_full_match("äb", "..b")) is False
    assert text(strings.regex_replace("é日x", "[é日]", "Ü")) == "ÜÜx".encode()
    assert text(strings.regex_replace("é日", "", "-")) == "-é-日-".encode()
    # Classes hold ASCII alone: ٣ is a digit elsewhere.
    assert text(strings.regex_replace("3٣ é", r"\d|\w|\s", "")) == "٣é".encode()


def test_patterns_leave_what_is_not_text_as_it_is() -> None:
    broken = np.array([b"\xffa\xc3", b"\xed\xa0\x80a", b"a\x00"], object)
    assert text(strings.regex_replace(broken, "a", "é")) == [
        b"\xff\xc3\xa9\xc3",
        b"\xed\xa0\x80\xc3\xa9",
        b"\xc3\xa9\x00",
    ]
    with pytest.raises(Error, match="is no regular expression: invalid UTF-8"):
        text(strings.regex_replace(broken, np.array(b"\xff", object), ""))
    assert text(strings.regex_replace(broken, ".", ""))[0] == b"\xff\xc3"
    assert text(strings.regex_replace(broken, "", "-"))[0] == b"-\xff-a-\xc3-"


def test_an_empty_match_does_not_follow_another_match() -> None:
    assert text(strings.regex_replace("baac", "a*", "-")) == b"-b-c-"
    assert text(strings.regex_replace("éaé", "a*", "-")) == "-é-é-".encode()
    assert text(strings.regex_replace("aé", "a*", "-", replace_global=False)) == "-é".encode()
    assert text(strings.regex_replace("ab", r"\b", "|")) == b"|ab|"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Python's `re` takes years for these."""
    long = "a" * 30_000 + "b"
    with fb.Session() as sess:
        sess.run(strings.regex_full_match(long, pattern))
        sess.run(strings.regex_replace(long, pattern, ""))


def test_patterns_have_the_syntax_of_re2() -> None:
    assert text(strings.regex_full_match(["éa", "1"], r"[[:^digit:]]\p{L}")) == [True, False]
    assert text(strings.regex_replace("ab\n", "b$", "")) == b"ab\n"
    for missing in ("(?=a)", r"(a)\1", "(?<=a)b"):
        with pytest.raises(Error, match="no regular expression") as caught:
            strings.regex_replace("a", missing, "")
        assert "the syntax of RE2" in str(caught.value.hint)


def test_numbers() -> None:
    assert text(strings.to_number(["nan", "-inf", "1e400"], fb.float64))[1:] == [-np.inf, np.inf]
    assert text(strings.to_number(["0xF", "-0X1.8p1"])) == [15.0, -3.0]
    for wrong in ("", "1_0", "x", "1.5e", "0xg", "0x1p9999"):
        with pytest.raises(Error, match="is no number"):
            text(strings.to_number(wrong))
    for wrong in ("1.0", "x", "1_0"):
        with pytest.raises(Error, match="no whole number"):
            text(strings.to_number(wrong, fb.int32))
    with pytest.raises(Error, match="does not fit int32"):
        text(strings.to_number("2147483648", fb.int32))
    assert text(strings.as_string(fb.constant([0.1, 1e20]))) == [
        b"0.100000",
        b"100000002004087734272.000000",
    ]
    assert text(strings.as_string([True, False], width=6)) == [b"  true", b" false"]
    assert text(strings.as_string([5, -5], fill="+")) == [b"+5", b"-5"]
    x = fb.constant([1.0, np.nan, -np.inf], fb.float16)
    assert text(strings.as_string(x, shortest=True)) == [b"1", b"nan", b"-inf"]


def test_hashes() -> None:
    words = [bytes([k % 251] * k) for k in range(150)]
    fast = text(strings.to_hash_bucket_fast(words, 7))
    assert fast == [fingerprint(w) % 7 for w in words]
    assert set(fast) == set(range(7))
    one, two = (text(strings.to_hash_bucket_strong(words, 1000, [k, 3])) for k in (1, 2))
    assert one != two
    assert one == [siphash((1, 3), w) % 1000 for w in words]


def test_base64() -> None:
    every = [bytes(range(k)) for k in range(9)]
    for pad in (False, True):
        assert text(fb.decode_base64(fb.encode_base64(every, pad=pad))) == every
    for wrong in ("a", "a===", "YQ=", "+/+/", "Y Q", "YQ\n"):
        with pytest.raises(Error, match="is no base64"):
            text(fb.decode_base64(wrong))


def test_raw_bytes() -> None:
    x = fb.decode_raw([b"\x01\x02", b"\x03\x00"], fb.uint8)
    assert x.shape == [2, None]
    assert text(x) == [[1, 2], [3, 0]]
    assert text(fb.decode_raw(b"\x00\x01\x02", fb.bool)) == [False, True, True]
    assert text(fb.decode_raw(np.array([], object), fb.float32)) == []
    assert evaluate(fb.decode_raw(np.float16(1.5).tobytes(), fb.float16)) == [1.5]
    with pytest.raises(Error, match="of one length"):
        text(fb.decode_raw(["a", "bc"], fb.uint8))
    with pytest.raises(Error, match="no multiple of the 4"):
        text(fb.decode_raw("abc", fb.int32))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: strings.join("ab"), "a list of tensors"),
        (lambda: strings.join([]), "nothing to join"),
        (lambda: strings.join([["a", "b"], ["c", "d", "e"]]), "broadcast"),
        (lambda: strings.join([1.0]), "string"),
        (lambda: strings.reduce_join(["a"], 1), "out of range"),
        (lambda: strings.length("a", unit="CHAR"), "'unit' is one of 'BYTE', 'UTF8_CHAR'"),
        (lambda: strings.substr("a", 0, 1, unit="CHAR"), "'unit' is one of 'BYTE', 'UTF8_CHAR'"),
        (lambda: strings.lower("a", encoding="latin-1"), "'encoding' is one of '', 'utf-8'"),
        (lambda: strings.regex_replace("a", "(", "b"), "no regular expression"),
        (lambda: strings.regex_replace("a", "(?u)a", "b"), "no regular expression"),
        (lambda: strings.regex_replace("a", "a", r"\1"), "names group 1 of 0"),
        (lambda: strings.regex_replace("a", "a", "\\x"), "a backslash"),
        (lambda: strings.regex_replace("a", "a", "b\\"), "a backslash"),
        (lambda: strings.regex_replace("a", ["a"], "b"), "'pattern' is a scalar"),
        (lambda: strings.regex_full_match("a", "*"), "no regular expression"),
        (lambda: strings.split([["a"]]), "a vector"),
        (lambda: strings.split("a", [["a"]]), "a scalar or a vector"),
        (lambda: strings.to_number("1", fb.bool), "not bool"),
        (lambda: strings.to_number(1.0), "string"),
        (lambda: strings.as_string([1], precision=2), "for floats"),
        (lambda: strings.as_string([1.0], scientific=True, shortest=True), "either"),
        (lambda: strings.as_string([1.0], fill="x"), "'fill' is one of '', '0', ' '"),
        (lambda: strings.as_string([True], fill="0"), "spaces only"),
        (lambda: strings.to_hash_bucket_fast("a", 0), "at least one bucket"),
        (lambda: strings.to_hash_bucket_strong("a", 5, [1]), "two ints"),
        (lambda: fb.decode_raw("a", fb.string), "not string"),
    ],
    ids=count(),
)
def test_errors_at_construction(build: Any, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        build()
    assert "test_strings.py" in str(caught.value)


def test_records_that_are_none() -> None:
    x = fb.placeholder(fb.string, [None])
    fields = fb.decode_csv(x, [[1.0], fb.constant([], fb.int64), ["?"]])
    assert [(t.dtype, t.shape) for t in fields] == [
        (fb.float32, [None]),
        (fb.int64, [None]),
        (fb.string, [None]),
    ]
    with fb.Session() as sess:
        for record, message in (
            ("1,2", r"b'1,2' has 2 fields, not 3 \(record 1\)"),
            ("", "has 1 field, not 3"),
            ("1,,x", r"field 1 of b'1,,x' is missing \(record 1\)"),
            ("1,2.5,x", "field 1 of .* is to be int64: b'2.5' is no whole number .record 1."),
            ("y,2,x", "field 0 of b'y,2,x' is to be float32: b'y' is no number .record 1."),
            ('1,2,"x', "is no record"),
            ("1,2,x\n3,4,y", "is no record"),
            ("1," + "9" * 30 + ",x", "does not fit int64"),
            ('"' + "x" * 10**6, "larger than field limit"),
        ):
            with pytest.raises(fb.errors.InvalidArgumentError, match=message):
                sess.run(fields, {x: ["1,2,x", record]})
        matrix = fb.decode_csv([["1", "2"], ["3", "x"]], [[0]])
        with pytest.raises(
            fb.errors.InvalidArgumentError, match=r"no whole number \(record \[1, 1"
        ):
            sess.run(matrix)
        bytes_ = sess.run(fields[2], {x: [b"1,2,\xff\x00\xe4"]})
        assert bytes_.tolist() == [b"\xff\x00\xe4"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"field_delim": ", "}, "field_delim is one character"),
        ({"select_cols": [1, 0, 2]}, "ascending order"),
        ({"select_cols": [1]}, "3 defaults for 1 field"),
        ({"record_defaults": [True]}, "not read as bool"),
        ({"record_defaults": [[1.0, 2.0]]}, "a default is a scalar"),
    ],
)
def test_records_that_cannot_be_read(arguments: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        fb.decode_csv(**{"records": ["1,2,x"], "record_defaults": [[1.0], [1], ["?"]], **arguments})
