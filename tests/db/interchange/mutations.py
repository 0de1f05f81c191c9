"""Ways to damage a file: what disks, editors, merges and other people's programs do to results."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TEXT = re.compile(rb'"[^"\\]*"')
_ENTRY = re.compile(rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|-?[\d.]+|true|false|null)')
_VALUES = (
    b"NaN", b"Infinity", b"-Infinity", b"nan", b"inf", b"1e999", b"-1e999", b"1e308", b"-1", b"0", b"null",
    b"true", b"[]", b"{}", b'""', b'"text"', b"", b"9" * 25, b"9" * 5000, b"0.1e-400", b"9223372036854775807",
    b"9223372036854775808", b"1_000", b"0x10", b'"\\ud800"', b'"\\u0000"', b"\xed\xa0\x80", b"\0",
    b"\xff\xfe", b'"' + b"x" * 20_000 + b'"', b"[" * 2_000 + b"]" * 2_000, b'{"a":' * 50_000,
)  # fmt: skip


def truncate(data: bytes, generator: random.Random) -> bytes:
    return data[: generator.randrange(len(data) + 1)]


def cut_out(data: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(data) + 1)
    return data[:start] + data[start + generator.randrange(1, 40) :]


def repeat(data: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(data) + 1)
    piece = data[start : start + generator.randrange(1, 200)]
    return data[:start] + piece * generator.randrange(2, 5) + data[start:]


def flip(data: bytes, generator: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(generator.randrange(1, 6) if damaged else 0):
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
    return bytes(damaged)


def insert(data: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(data) + 1)
    return data[:start] + generator.choice(_VALUES) + data[start:]


def _replace(pattern: re.Pattern[bytes], data: bytes, generator: random.Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = generator.choice(found)
    return data[: match.start()] + generator.choice(_VALUES) + data[match.end() :]


def other_number(data: bytes, generator: random.Random) -> bytes:
    return _replace(_NUMBER, data, generator)


def other_text(data: bytes, generator: random.Random) -> bytes:
    return _replace(_TEXT, data, generator)


def duplicate_key(data: bytes, generator: random.Random) -> bytes:
    found = list(_ENTRY.finditer(data))
    if not found:
        return data
    match = generator.choice(found)
    return data[: match.end()] + b", " + match[0] + data[match.end() :]


def byte_order_mark(data: bytes, generator: random.Random) -> bytes:
    return generator.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf" * 2)) + data


def line_ends(data: bytes, generator: random.Random) -> bytes:
    return data.replace(b"\n", generator.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n")))


def utf16(data: bytes, _generator: random.Random) -> bytes:
    return data.decode("utf-8", errors="replace").encode("utf-16")


def shuffle_lines(data: bytes, generator: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    generator.shuffle(lines)
    return b"".join(lines)


def swap_delimiters(data: bytes, generator: random.Random) -> bytes:
    return data.replace(b",", generator.choice((b";", b"\t", b",,", b'"', b"\\")), generator.randrange(1, 5))


def packed(data: bytes, generator: random.Random) -> bytes:
    """Compressed, and then damaged half of the time; or a bomb of zeros."""
    content = generator.choice((data, data, bytes(20 * 2**20)))
    if generator.random() < 0.5:
        result = gzip.compress(content, compresslevel=1)
    else:
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in generator.sample(("a.csv", "b.json", "c/d.jsonl", "../e.csv", "f.zip"), 2):
                archive.writestr(name, content)
        result = output.getvalue()
    return flip(result, generator) if generator.random() < 0.5 else result


MUTATIONS: tuple[Mutation, ...] = (
    truncate, cut_out, repeat, flip, insert, other_number, other_text, duplicate_key, byte_order_mark,
    line_ends, utf16, shuffle_lines, swap_delimiters, packed,
)  # fmt: skip
_OFTEN = (other_number, other_text, insert, duplicate_key)


def mutated(data: bytes, generator: random.Random) -> bytes:
    """`data` after one to three mutations, the telling ones more often."""
    for _ in range(generator.randrange(1, 4)):
        data = generator.choice(MUTATIONS + _OFTEN * 2)(data, generator)
    return data
