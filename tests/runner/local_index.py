"""A package index in a directory: wheels made again from what is installed here, as other releases too."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def offer(index: Path, package: str, version: str, *, withdrawn: bool = False) -> None:
    """An entry of `index` that pip lists and nobody installs, `withdrawn` as PEP 592 says it."""
    directory = index / package
    directory.mkdir(parents=True, exist_ok=True)
    reason = ' data-yanked="broken"' if withdrawn else ""
    name = f"{package}-{version}-py3-none-any.whl"
    with (directory / "index.html").open("a") as page:
        page.write(f'<a href="{name}"{reason}>{name}</a>\n')


def offer_wheel(index: Path, package: str, version: str, files: Iterable[tuple[str, bytes]]) -> None:
    """A wheel of these files, by path, for `index`; those of a `.dist-info` among them are kept."""
    stem = package.replace("-", "_")
    name, told = f"{stem}-{version}-py3-none-any.whl", f"{stem}-{version}.dist-info"
    directory = index / canonicalize_name(package)
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        f"{told}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n".encode(),
        f"{told}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_STORED) as wheel:
        for path, data in (*files, *content.items()):
            if path in content and path in wheel.namelist():
                continue
            wheel.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        wheel.writestr(f"{told}/RECORD", "\n".join(record) + "\n")
    with (directory / "index.html").open("a") as page:
        page.write(f'<a href="{name}">{name}</a>\n')


def offer_installed(
    index: Path,
    package: str,
    *,
    version: str | None = None,
    edited: Mapping[str, tuple[str, str]] | None = None,
) -> None:
    """The installed `package` as a wheel of `index`, of another `version` where one is given; in each file of
    `edited` the first text gives way to the second.
    """
    installed = metadata.distribution(package)
    offer_wheel(
        index, package, version or installed.version, _content(installed, package, version, edited or {})
    )


def _content(
    installed: metadata.Distribution,
    package: str,
    version: str | None,
    edited: Mapping[str, tuple[str, str]],
) -> Iterable[tuple[str, bytes]]:
    for file in installed.files or ():
        path = file.as_posix()
        # Scripts lie outside; compiled files and what is told of the wheel are made anew.
        told = ".dist-info/" in path
        if path.startswith("..") or "__pycache__" in path or (told and file.name != "METADATA"):
            continue
        content = Path(str(installed.locate_file(file))).read_bytes()
        if told:
            new = version or installed.version
            path = f"{package.replace('-', '_')}-{new}.dist-info/METADATA"
            content = content.replace(
                f"\nVersion: {installed.version}\n".encode(), f"\nVersion: {new}\n".encode()
            )
        if path in edited:
            before, after = edited[path]
            assert before.encode() in content, path
            content = content.replace(before.encode(), after.encode())
        yield path, content


def needed_by(package: str) -> set[str]:
    """Every package that an installation of `package` here brings along."""
    found: set[str] = set()
    waiting = [package]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and name not in found:
                found.add(name)
                waiting.append(name)
    return found
