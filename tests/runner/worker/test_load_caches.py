"""The file that a production program imports: it fills caches that fit, and refuses the others unread."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import torch

from compilewatch.runner.worker.compiler import load_caches as loader
from compilewatch.runner.worker.compiler.load_caches import CacheRefusedError, load_caches, surroundings


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """What torch was given to load; the caches of this process are empty."""
    given: list[bytes] = []
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(
        torch.compiler, "load_cache_artifacts", lambda data: given.append(data) or True, raising=False
    )
    return given


@pytest.fixture
def directory(tmp_path: Path, loaded: list[bytes]) -> Path:
    """As the precompile script writes it, valid here."""
    with zipfile.ZipFile(tmp_path / "caches.zip", "w") as archive:
        archive.writestr("artifacts", b"artifacts of torch")
        archive.writestr("inductor/ab/cab.so", b"machine code")
    digest = hashlib.sha256((tmp_path / "caches.zip").read_bytes()).hexdigest()
    _say(tmp_path, {"sha256": digest, "surroundings": surroundings("cpu")})
    return tmp_path


def _say(directory: Path, valid_for: object) -> None:
    (directory / "valid_for.json").write_text(json.dumps(valid_for))


def _changed(directory: Path, **facts: str) -> None:
    valid_for = json.loads((directory / "valid_for.json").read_text())
    valid_for["surroundings"] |= facts
    _say(directory, valid_for)


def _refusal(directory: Path) -> str:
    with pytest.raises(CacheRefusedError) as refused:
        load_caches(directory, "cpu")
    return str(refused.value)


def test_what_fits_is_loaded_with_its_libraries(directory: Path, loaded: list[bytes], tmp_path: Path):
    load_caches(directory, "cpu")
    assert loaded == [b"artifacts of torch"]
    assert (tmp_path / "inductor/ab/cab.so").read_bytes() == b"machine code"


def test_a_library_that_is_there_stays(directory: Path, loaded: list[bytes], tmp_path: Path):
    library = tmp_path / "inductor/ab/cab.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"in use")
    load_caches(directory, "cpu")
    assert library.read_bytes() == b"in use"


@pytest.mark.parametrize(
    ("fact", "value", "way_out"),
    [
        ("torch", "2.12.1", "run precompile.py here"),
        ("device", "NVIDIA H100 80GB HBM3", "run precompile.py here"),
        ("TORCHINDUCTOR_FREEZING", "1", "set TORCHINDUCTOR_FREEZING=1 first"),
        ("threads", "97", "torch.set_num_threads(97) first"),
        ("matmul precision", "medium", "torch.set_float32_matmul_precision('medium') first"),
    ],
)
def test_another_surrounding_is_named_and_nothing_is_loaded(
    directory: Path, loaded: list[bytes], fact: str, value: str, way_out: str, tmp_path: Path
):
    here = surroundings("cpu").get(fact, "none")
    _changed(directory, **{fact: value})
    said = _refusal(directory)
    assert said == f"These caches are for {fact} {value} (here {here}): {way_out}."
    assert loaded == []
    assert not list(tmp_path.rglob("cab.so"))


def test_a_compiler_variable_of_this_process_alone_is_named(
    directory: Path, loaded: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    assert "TORCHINDUCTOR_MAX_AUTOTUNE none (here 1)" in _refusal(directory)
    assert loaded == []


def test_one_changed_byte_is_damage_and_nothing_is_loaded(directory: Path, loaded: list[bytes]):
    caches = directory / "caches.zip"
    content = bytearray(caches.read_bytes())
    content[len(content) // 2] ^= 1
    caches.write_bytes(content)
    assert "caches.zip is damaged" in _refusal(directory)
    assert loaded == []


@pytest.mark.parametrize("is_archive", [False, True])
def test_a_file_of_something_else_is_a_sentence_whatever_its_hash(
    directory: Path, loaded: list[bytes], is_archive: bool
):
    caches = directory / "caches.zip"
    if is_archive:
        with zipfile.ZipFile(caches, "w") as archive:
            archive.writestr("other", b"file")
    else:
        caches.write_bytes(b"")
    digest = hashlib.sha256(caches.read_bytes()).hexdigest()
    _say(directory, {"sha256": digest, "surroundings": surroundings("cpu")})
    assert "caches.zip is damaged" in _refusal(directory)
    assert loaded == []


@pytest.mark.parametrize("text", ["{", "[]", '{"sha256": "0", "surroundings": 3}'])
def test_a_damaged_description_is_a_sentence(directory: Path, loaded: list[bytes], text: str):
    (directory / "valid_for.json").write_text(text)
    assert "valid_for.json is damaged: run precompile.py again." in _refusal(directory)
    assert loaded == []


@pytest.mark.parametrize("name", [loader.CACHES, loader.VALID_FOR])
def test_a_missing_file_is_a_sentence(directory: Path, loaded: list[bytes], name: str):
    (directory / name).unlink()
    assert f"{name} cannot be read (No such file or directory)" in _refusal(directory)
    assert loaded == []


def test_a_torch_that_cannot_read_them_says_so(directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", lambda data: None, raising=False)
    assert "cannot load caches.zip" in _refusal(directory)
