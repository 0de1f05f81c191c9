"""A build step gets the caller's indexes and folders of packages, at places of its own."""

from pathlib import Path

import pytest

from tests.house.pip_settings import mounts, pip_settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIND_LINKS", "INDEX_URL", "EXTRA_INDEX_URL", "CERT", "TRUSTED_HOST", "PROXY", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)


def test_variables_win_over_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "pip.conf"
    written.write_text(
        "[global]\nindex-url = https://a.example\nextra-index-url = https://b.example\n  file:///srv/c\n"
        "find-links = /srv/x\nquiet = 1\n[install]\nindex-url = https://d.example\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(written))
    monkeypatch.setenv("PIP_FIND_LINKS", "/srv/y")
    settings = pip_settings()
    assert settings["index-url"] == ["https://d.example"]
    assert settings["extra-index-url"] == ["https://b.example", "file:///srv/c"]
    assert settings["find-links"] == ["/srv/y"]
    assert "quiet" not in settings


def test_what_lies_on_this_machine_is_mounted_and_named_by_its_place(tmp_path: Path) -> None:
    index, links, cert = tmp_path / "packages" / "simple", tmp_path / "wheels", tmp_path / "ca.crt"
    index.mkdir(parents=True)
    links.mkdir()
    cert.touch()
    settings = {
        "extra-index-url": ["https://a.example", f"file://{index}"],
        "find-links": [str(links)],
        "cert": [str(cert)],
    }
    script = mounts(settings, tmp_path)
    assert (tmp_path / "pip.conf").read_text(encoding="utf-8").splitlines() == [
        "[global]",
        "extra-index-url = https://a.example",
        "    file:///mnt/1/simple",
        "find-links = /mnt/2",
        "cert = /mnt/3",
    ]
    binds = [line for line in script.splitlines() if "--bind" in line]
    assert binds == [
        f'mkdir "$root"/mnt/1; mount --bind -o ro {index.parent} "$root"/mnt/1',
        f'mkdir "$root"/mnt/2; mount --bind -o ro {links} "$root"/mnt/2',
        f'touch "$root"/mnt/3; mount --bind -o ro {cert} "$root"/mnt/3',
    ]
