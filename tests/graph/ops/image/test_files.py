"""Images in files: what is encoded comes back, whoever wrote it; what is damaged is told of."""

from __future__ import annotations

import io
import zlib
from itertools import count
from typing import Any

import numpy as np
import pytest
from PIL import Image

import flowbook as fb
from flowbook.graph.numerics.formats import png16
from tests.interpreter import evaluate

image = fb.image
RANDOM = np.random.default_rng(5)
Error = fb.errors.InvalidArgumentError


def pixels(channels: int, dtype: Any = np.uint8, size: Any = (5, 7)) -> np.ndarray:
    return RANDOM.integers(0, np.iinfo(dtype).max + 1, (*size, channels), dtype)


def smooth(channels: int) -> np.ndarray:
    ramp = np.add.outer(np.arange(24), 2 * np.arange(32))[..., None]
    return (ramp * [3, 2, 1][:channels] % 256).clip(60, 200).astype(np.uint8)


def value(tensor: fb.Tensor) -> Any:
    with fb.Session() as sess:
        return sess.run(tensor)


def file_of(array: np.ndarray, kind: str, mode: str | None = None, **options: Any) -> bytes:
    picture = Image.fromarray(array)
    buffer = io.BytesIO()
    (picture.convert(mode) if mode else picture).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_there_and_back(channels: int, dtype: Any) -> None:
    given = pixels(channels, dtype)
    contents = image.encode_png(given)
    assert (contents.shape, contents.dtype) == ([], fb.string)
    decoded = image.decode_png(contents, channels, dtype)
    assert (decoded.shape, decoded.dtype) == ([None, None, channels], dtype)
    found = evaluate(decoded)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(evaluate(image.decode_png(contents, dtype=dtype)), given)
    np.testing.assert_array_equal(evaluate(image.decode_image(contents, dtype=dtype)), given)


def test_a_file_as_bytes() -> None:
    given = pixels(3)
    contents = np.frombuffer(file_of(given, "PNG"), np.uint8)
    np.testing.assert_array_equal(evaluate(image.decode_image(contents)), given)
    with pytest.raises(Error, match="a vector of bytes, not of shape"):
        image.decode_png(contents[None])


def test_depths() -> None:
    deep = pixels(3, np.uint16)
    np.testing.assert_array_equal(evaluate(image.decode_png(image.encode_png(deep))), deep >> 8)
    grey = pixels(1, np.uint16)
    np.testing.assert_array_equal(evaluate(image.decode_png(image.encode_png(grey))), grey >> 8)
    shallow = pixels(3)
    wide = image.decode_png(image.encode_png(shallow), dtype=fb.uint16)
    np.testing.assert_array_equal(evaluate(wide), shallow.astype(np.uint16) * 257)
    floats = evaluate(image.decode_image(image.encode_png(shallow), dtype=fb.float32))
    np.testing.assert_allclose(floats, shallow / 255, rtol=1e-6)


def test_Pillow_reads_what_is_written() -> None:
    for channels in (1, 2, 3, 4):
        given = pixels(channels)
        found = np.array(Image.open(io.BytesIO(value(image.encode_png(given, 9)))))
        np.testing.assert_array_equal(found.reshape(given.shape), given)
    grey = pixels(1, np.uint16)
    found = np.array(Image.open(io.BytesIO(value(image.encode_png(grey)))))
    np.testing.assert_array_equal(found, grey[..., 0])
    colour = Image.open(io.BytesIO(value(image.encode_png(pixels(3, np.uint16)))))
    colour.load()
    assert colour.mode == "RGB"


def test_channels_are_converted() -> None:
    rgb = pixels(3)
    contents = file_of(rgb, "PNG")
    opaque = evaluate(image.decode_png(contents, 4))
    np.testing.assert_array_equal(opaque[..., :3], rgb)
    assert (opaque[..., 3] == 255).all()
    grey = evaluate(image.decode_png(contents, 1))
    # To the bit what libpng makes of it, which TensorFlow calls.
    np.testing.assert_array_equal(grey[..., 0], (rgb @ np.array([9798, 19235, 3735])) >> 15)
    deep = pixels(3, np.uint16)
    contents = evaluate(image.encode_png(deep))
    for channels in (1, 2, 4):
        found = evaluate(image.decode_png(contents, channels, np.uint16))
        assert found.shape == (5, 7, channels)
    np.testing.assert_allclose(
        evaluate(image.decode_png(contents, 1, np.uint16))[..., 0],
        deep @ [0.299, 0.587, 0.114],
        atol=1,
    )
    lone = evaluate(image.encode_png(pixels(1, np.uint16)))
    assert evaluate(image.decode_png(lone, 3, np.uint16)).shape == (5, 7, 3)


def test_palettes_and_bits() -> None:
    rgb = pixels(3)
    palette = file_of(rgb, "PNG", "P")
    assert evaluate(image.decode_png(palette)).shape == (5, 7, 3)
    bits = file_of(rgb, "PNG", "1")
    assert set(np.unique(evaluate(image.decode_png(bits)))) <= {0, 255}
    clear = file_of(rgb, "PNG", "P", transparency=0)
    assert evaluate(image.decode_png(clear)).shape == (5, 7, 4)


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_there_and_back(channels: int) -> None:
    given = smooth(channels)
    for options in ({}, {"progressive": True, "optimize_size": True}, {"format": "rgb"}):
        if channels == 1 and "format" in options:
            continue
        contents = image.encode_jpeg(given, quality=100, chroma_downsampling=False, **options)
        found = evaluate(image.decode_jpeg(contents))
        assert found.shape == given.shape
        assert np.abs(found.astype(int) - given).mean() < 2
    small = evaluate(image.decode_jpeg(contents, ratio=4))
    assert small.shape == (6, 8, channels)
    for ratio, shape in ((2, (3, 4)), (4, (2, 2)), (8, (1, 1))):
        odd = image.encode_jpeg(given[:5, :7])
        assert evaluate(image.decode_jpeg(odd, ratio=ratio)).shape == (*shape, channels)
    lean, full = (value(image.encode_jpeg(given, quality=q)) for q in (10, 95))
    assert len(lean) < len(full)
    assert evaluate(image.decode_jpeg(contents, 4 - channels)).shape[2] == 4 - channels


def test_other_formats() -> None:
    rgb = smooth(3)
    np.testing.assert_array_equal(evaluate(image.decode_image(file_of(rgb, "BMP"))), rgb)
    assert evaluate(image.decode_image(file_of(rgb, "GIF"))).shape == rgb.shape
    assert evaluate(image.decode_image(file_of(rgb, "JPEG"), 1)).shape == (*rgb.shape[:2], 1)
    with pytest.raises(Error, match="no PNG image"):
        evaluate(image.decode_png(file_of(rgb, "JPEG")))
    with pytest.raises(Error, match="no PNG or JPEG or GIF or BMP image"):
        evaluate(image.decode_image(file_of(rgb, "TIFF")))


def test_frames_of_an_animation() -> None:
    given = [smooth(3), smooth(3)[::-1], smooth(3)[:, ::-1]]
    first, *others = (Image.fromarray(frame).quantize(64) for frame in given)
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others)
    frames = image.decode_gif(buffer.getvalue())
    assert (frames.shape, frames.dtype) == ([None, None, None, 3], fb.uint8)
    wanted = [np.array(frame.convert("RGB")) for frame in (first, *others)]
    np.testing.assert_array_equal(evaluate(frames), wanted)
    np.testing.assert_array_equal(
        evaluate(image.decode_image(buffer.getvalue(), 3)), evaluate(frames)[0]
    )
    for broken in (buffer.getvalue()[:40], file_of(given[0], "PNG")):
        with pytest.raises(Error, match="no GIF image, or it is damaged"):
            evaluate(image.decode_gif(broken))


def test_animations_that_are_too_large(monkeypatch: Any) -> None:
    first, *others = (Image.fromarray(pixels(3, size=(40, 40))) for _ in range(3))
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2 * 40 * 40)
    with pytest.raises(Error, match="more than 3200 pixels"):
        evaluate(image.decode_gif(buffer.getvalue()))


def test_what_a_jpeg_file_is_without_its_pixels() -> None:
    for channels in (1, 3):
        contents = file_of(smooth(channels).squeeze(), "JPEG")
        shape = image.extract_jpeg_shape(contents, fb.int64)
        assert (shape.shape, shape.dtype) == ([3], fb.int64)
        assert evaluate(shape).tolist() == [24, 32, channels]
    assert evaluate(image.is_jpeg([contents, b"\xff\xd8\xff", b"\x89PNG"])).tolist() == [1, 1, 0]
    with pytest.raises(Error, match="no JPEG image"):
        evaluate(image.extract_jpeg_shape(file_of(smooth(3), "PNG")))


def test_bmp_and_a_part_of_a_jpeg() -> None:
    rgb = smooth(3)
    np.testing.assert_array_equal(evaluate(image.decode_bmp(file_of(rgb, "BMP"))), rgb)
    contents = file_of(rgb, "JPEG")
    part = image.decode_and_crop_jpeg(contents, [2, 3, 10, 20], 1)
    whole = image.decode_jpeg(contents, 1)
    np.testing.assert_array_equal(evaluate(part), evaluate(whole)[2:12, 3:23])
    with pytest.raises(fb.errors.InvalidIndexError, match="leave axis 0"):
        evaluate(image.decode_and_crop_jpeg(contents, [2, 3, 100, 20]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_what_jpeg_loses(dtype: Any) -> None:
    given = evaluate(image.convert_image_dtype(smooth(3), dtype))
    quality = fb.placeholder(fb.int32, [])
    found = image.adjust_jpeg_quality(given, quality)
    assert (found.shape, found.dtype) == ([24, 32, 3], dtype)
    with fb.Session() as sess:
        losses = [
            np.abs(sess.run(found, {quality: q}).astype(float) - given).mean() for q in (5, 50, 95)
        ]
        with pytest.raises(Error, match="from 0 to 100, not 101"):
            sess.run(found, {quality: 101})
    assert losses[0] > losses[1] > losses[2] > 0
    by_hand = image.decode_jpeg(image.encode_jpeg(smooth(3), quality=50))
    known = evaluate(image.adjust_jpeg_quality(smooth(3), 50))
    np.testing.assert_array_equal(known, evaluate(by_hand))


def test_random_qualities() -> None:
    found = image.random_jpeg_quality(smooth(3), 10, 13, seed=3)
    wanted = [evaluate(image.adjust_jpeg_quality(smooth(3), q)).tobytes() for q in (10, 11, 12)]
    with fb.Session() as sess:
        seen = {sess.run(found).tobytes() for _ in range(30)}
    assert seen == {*wanted}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "deep"])
def test_damaged_files(kind: str) -> None:
    noise = pixels(3, size=(50, 50))
    if kind == "deep":
        whole = value(image.encode_png(noise.astype(np.uint16)))
    else:
        whole = file_of(noise, kind)
    contents = fb.placeholder(fb.string, [])
    decoded = image.decode_image(contents, dtype=fb.uint16)
    with fb.Session() as sess:
        assert sess.run(decoded, {contents: whole}).shape == (50, 50, 3)
        for length in (0, 1, 20, 30, len(whole) // 2, len(whole) - 60):
            with pytest.raises(Error, match="damaged"):
                sess.run(decoded, {contents: whole[:length]})
        with pytest.raises(Error, match=r"or it is damaged\n") as caught:
            sess.run(decoded, {contents: b"no image at all"})
        assert "object at" not in str(caught.value)


def test_damage_within_deep_files() -> None:
    whole = value(image.encode_png(pixels(3, np.uint16)))
    place = whole.index(b"IDAT") + 12
    wrong = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    with pytest.raises(Error, match="checksum"):
        evaluate(image.decode_png(wrong))
    header = whole.index(b"IHDR")
    fields = bytearray(whole[header : header + 17])
    fields[16] = 1
    rest = whole[header + 21 :]
    interlaced = whole[:header] + bytes(fields) + zlib.crc32(fields).to_bytes(4) + rest
    with pytest.raises(Error, match="interlaced"):
        evaluate(image.decode_png(interlaced))
    fields[16], fields[4:12] = 0, (2**30).to_bytes(4) * 2
    huge = whole[:header] + bytes(fields) + zlib.crc32(fields).to_bytes(4) + rest
    with pytest.raises(Error, match="more than"):
        evaluate(image.decode_png(huge))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_filter_of_deep_files(channels: int) -> None:
    """Rows are filtered here by the definition, with each filter in turn."""
    given = pixels(channels, np.uint16, (10, 6))
    given[5:] //= 300
    raw = given.astype(">u2").reshape(10, -1).view(np.uint8).astype(int)
    step = 2 * channels
    left = np.pad(raw, ((0, 0), (step, 0)))[:, : raw.shape[1]]
    above = np.pad(raw, ((1, 0), (0, 0)))[:10]
    corner = np.pad(raw, ((1, 0), (step, 0)))[:10, : raw.shape[1]]
    estimate = left + above - corner
    distances = np.abs(estimate - np.stack([left, above, corner]))
    paeth = np.choose(distances.argmin(axis=0), [left, above, corner])
    guesses = [0 * raw, left, above, (left + above) // 2, paeth]
    rows = b"".join(
        bytes([r % 5]) + bytes(((raw[r] - guesses[r % 5][r]) % 256).tolist()) for r in range(10)
    )
    whole = png16.encode(given, 0)
    head = whole[: whole.index(b"IDAT") - 4]
    written = head + png16._chunk(b"IDAT", zlib.compress(rows)) + png16._chunk(b"IEND", b"")
    np.testing.assert_array_equal(png16.decode(written), given)
    shallow = np.array(Image.open(io.BytesIO(written)))
    if channels > 2:
        np.testing.assert_array_equal(shallow, given >> 8)


def test_images_that_are_too_large(monkeypatch: Any) -> None:
    contents = file_of(pixels(3, size=(40, 40)), "PNG")
    for limit in (1000, 100):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(Error, match=f"more than {limit} pixels"):
            evaluate(image.decode_png(contents))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: image.decode_png("x", 5), "channels are 0"),
        (lambda: image.decode_jpeg("x", 2), "channels are 0, 1, 3"),
        (lambda: image.decode_jpeg("x", ratio=3), "ratio"),
        (lambda: image.decode_png("x", dtype=fb.float32), "uint8 or uint16"),
        (lambda: image.decode_png(["x"]), "a string scalar"),
        (lambda: image.decode_png(fb.placeholder(fb.float32)), "string"),
        (lambda: image.encode_png(np.zeros((2, 2), np.uint8)), "1 or 2 or 3 or 4 channels"),
        (lambda: image.encode_png(np.zeros((2, 2, 5), np.uint8)), "1 or 2 or 3 or 4 channels"),
        (lambda: image.encode_png(np.zeros((0, 2, 3), np.uint8)), "has pixels"),
        (lambda: image.encode_png(np.zeros((2, 2, 3), np.float32)), "float32"),
        (lambda: image.encode_png(np.zeros((2, 2, 3), np.uint8), 10), "compression"),
        (lambda: image.encode_jpeg(np.zeros((2, 2, 4), np.uint8)), "1 or 3"),
        (lambda: image.encode_jpeg(np.zeros((2, 2, 1), np.uint8), "rgb"), "has 3 channels"),
        (
            lambda: image.encode_jpeg(np.zeros((2, 2, 1), np.uint8), "cmyk"),
            "'format' is one of '', 'grayscale'",
        ),
        (lambda: image.encode_jpeg(np.zeros((2, 2, 1), np.uint8), quality=101), "quality"),
        (lambda: image.decode_gif(["x"]), "a string scalar"),
        (lambda: image.extract_jpeg_shape("x", fb.float32), "int32 or int64"),
        (lambda: image.adjust_jpeg_quality(np.zeros((2, 2, 3)), 101), "from 0 to 100, not 101"),
        (lambda: image.adjust_jpeg_quality(np.zeros((2, 2, 2)), 50), "1 or 3 channels"),
        (lambda: image.random_jpeg_quality(np.zeros((2, 2, 3)), 50, 50), "50 and 50"),
    ],
    ids=count(),
)
def test_errors_at_construction(build: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        build()


def test_shapes_are_checked_in_the_run() -> None:
    unknown = fb.placeholder(fb.uint8)
    for build in (image.encode_png, image.encode_jpeg):
        with pytest.raises(Error, match="channels"):
            evaluate(build(unknown), {unknown: np.zeros((2, 2))})
    contents = fb.placeholder(fb.string)
    with pytest.raises(Error, match="string scalar"):
        evaluate(image.decode_png(contents), {contents: np.array([b"a"], object)})


def test_the_limit_is_Pillows() -> None:
    assert png16._MOST_PIXELS == Image.MAX_IMAGE_PIXELS
