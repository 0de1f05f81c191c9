"""Opening files: compression, archives, and the bounds that no input can pass."""

import gzip
import io
import random
import struct
import zipfile
from pathlib import Path

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files import opening as files
from compilewatch.db.interchange.files.opening import InputFile, input_files
from compilewatch.db.interchange.formats import detect


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def only(path: Path) -> InputFile:
    (file,) = input_files(path)
    return file


def test_plain_and_gzip_read_the_same(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfone\r\n\r\ntwo"
    (tmp_path / "a.csv").write_bytes(content)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(content))
    for name in ("a.csv", "b.csv.gz"):
        file = only(tmp_path / name)
        assert list(file.lines()) == [(1, b"one"), (2, b""), (3, b"two")]
        assert file.document() == b"one\r\n\r\ntwo"
        assert file.head(3) == b""
        assert file.head(6) == b"one"
    assert only(tmp_path / "b.csv.gz").name == "b.csv"


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"x"))
    assert only(tmp_path / "a.csv").document() == b"x"


def test_zip_members_come_in_order_and_know_their_siblings(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "r.zip", {"out/b.csv": b"2", "out/a.csv": b"1", "__MACOSX/x": b"", "out/.DS": b""}
    )
    first, second = input_files(path)
    assert (first.shown, first.name, first.document()) == (f"{path}: out/a.csv", "a.csv", b"1")
    sibling = first.sibling("b.csv")
    assert sibling.document() == second.document() == b"2"
    assert first.sibling("c.csv") is None


def test_a_sibling_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"2"))
    sibling = only(tmp_path / "a.csv").sibling("b.csv")
    assert sibling.document() == b"2"


def test_a_gzip_bomb_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FREE_EXPANDED_BYTES", 2**16)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(2**24)))
    with pytest.raises(RecordError, match="expands too far"):
        only(tmp_path / "bomb.gz").document()


def test_a_gzip_bomb_of_no_known_format_is_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FREE_EXPANDED_BYTES", 2**20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"a": "' + b"x" * 2**24 + b'"}'))
    with pytest.raises(RecordError, match="expands too far"):
        detect(only(path))


def test_a_zip_bomb_is_refused_before_reading(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.zip", {"a.csv": bytes(32 * 2**20)})
    with pytest.raises(RecordError, match=r"expands to 33554432 bytes, \d+ are allowed"):
        input_files(path)


def test_a_zip_that_understates_its_size_gives_no_more_than_it_says(tmp_path: Path) -> None:
    path = zipped(tmp_path / "liar.zip", {"a.csv": bytes(1_000_000)})
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 1_000_000), struct.pack("<I", 10)))
    with pytest.raises(RecordError, match="damaged"):
        only(path).document()


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({}, "holds no file"),
        ({"inner.zip": b"x"}, "an archive inside an archive"),
        ({"inner.csv.gz": b"x"}, "an archive inside an archive"),
    ],
)
def test_zips_that_are_refused(tmp_path: Path, members: dict[str, bytes], problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        input_files(zipped(tmp_path / "r.zip", members))


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_ZIP_MEMBERS", 2)
    with pytest.raises(RecordError, match="3 members, more than 2"):
        input_files(zipped(tmp_path / "r.zip", dict.fromkeys("abc", b"")))


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.zip", {"a.csv": b"x"})
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(RecordError, match="is encrypted"):
        input_files(path)


def test_other_methods_than_deflate_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "r.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.csv", bytes(1000))
    with pytest.raises(RecordError, match="packed by another method"):
        input_files(tmp_path / "r.zip")


def test_a_sibling_with_an_impossible_name_is_not_there(tmp_path: Path) -> None:
    (tmp_path / ("a" * 250)).write_bytes(b"1")
    assert only(tmp_path / ("a" * 250)).sibling("a" * 260) is None


def test_a_member_without_a_name_is_no_crash(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.zip", {"a": b"x"})
    path.write_bytes(path.read_bytes().replace(b"a", b"\0"))
    with pytest.raises(RecordError, match="a member has no name"):
        input_files(path)


@pytest.mark.parametrize("cut", [5, 15, 40, -10, -1])
def test_cut_archives_are_damaged_not_crashes(tmp_path: Path, cut: int) -> None:
    content = random.Random(0).randbytes(100)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", content)
    for name, data in (("a.zip", packed.getvalue()), ("a.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(data[:cut])
        with pytest.raises(RecordError, match="damaged"):
            [file.document() for file in input_files(tmp_path / name)]


def test_long_lines_and_documents_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 10)
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 2**20)
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 2**20)
    file = only(tmp_path / "a")
    with pytest.raises(RecordError, match="line 2: is longer"):
        list(file.lines())
    with pytest.raises(RecordError, match="more than 1 MiB in one JSON document"):
        file.document()


def test_what_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(RecordError, match="cannot be read"):
            input_files(path)


@pytest.mark.parametrize("name", ["../a.csv", "out/../../a.csv", "..\\a.csv"])
def test_members_outside_of_the_archive_are_named(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "r.zip", {name: b"1", "b.csv": b"2"})
    with pytest.raises(RecordError) as raised:
        input_files(path)
    assert raised.value.message == f"{path}: {name}: lies outside of the archive."
    assert (
        raised.value.next_step
        == "Pack it again from the folder that holds the files, or import them unpacked."
    )


def test_an_archive_of_hidden_files_says_so(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.zip", {".out/a.csv": b"1", "__MACOSX/b.csv": b"2"})
    with pytest.raises(RecordError, match="the archive holds hidden files only"):
        input_files(path)
