"""The documentation names only files, headings, make targets, commands and options that exist."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from compilewatch.dashboard.pages.guide.content import QUESTIONS
from compilewatch.runner.cli.app import app
from compilewatch.runner.output.tables import cells_named
from tests.house.shell_blocks import commands, prose, words_of
from tests.house.tracked import ROOT, project_files

PAGES = [path for path in project_files() if path.suffix == ".md"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
COMMAND: Any = typer.main.get_command(app)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, text: str) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (ROOT / page.parent / name).resolve() if name else ROOT / page
        missing = not file.exists()
        if missing or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            broken.append(f"{page}: {target}")
    return broken


def unknown_words(arguments: list[str]) -> list[str]:
    """Return the command or the options among `arguments` that compilewatch does not have."""
    command = COMMAND
    options = {option for parameter in command.params for option in parameter.opts}
    unknown = []
    for word in arguments:
        if word.startswith("-"):
            name = word.partition("=")[0]
            unknown += [] if name in options | {"--help"} else [name]
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return [*unknown, word]
            command = command.get_command(None, word)
            options |= {option for parameter in command.params for option in parameter.opts}
    return unknown


def helps(command: Any) -> Iterator[str]:
    """What a command and those below it say of themselves."""
    yield command.help or ""
    for name in getattr(command, "commands", {}):
        yield from helps(command.get_command(None, name))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, (ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_exist(page: Path) -> None:
    typed = commands((ROOT / page).read_text(encoding="utf-8"))
    unknown = {
        each.line: unknown_words(arguments)
        for each in typed
        if (arguments := words_of(each.line, "compilewatch")) is not None and unknown_words(arguments)
    }
    assert unknown == {}


def test_the_examples_of_the_commands_exist() -> None:
    examples = re.findall(r"Example: (compilewatch [^\n]+)", "\n".join(helps(COMMAND)))
    assert len(examples) > 30
    unknown = {line: unknown_words(words_of(line, "compilewatch") or []) for line in examples}
    assert {line: words for line, words in unknown.items() if words} == {}


def test_the_questions_of_the_guide_are_answered_by_commands_that_exist() -> None:
    typed = {command: unknown_words(command.split()) for _, _, command in QUESTIONS}
    assert {command: words for command, words in typed.items() if words} == {}
    columns = [command.split()[-1] for command in typed if "--columns" in command]
    assert [cells_named(names) for names in columns]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_make_targets_exist(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    inline = re.findall(r"`(make [^`\n]+)`", prose(text))
    lines = [*(typed.line for typed in commands(text)), *inline]
    called = [words for line in lines if (words := words_of(line, "make"))]
    named = {word for words in called for word in words if "=" not in word and not word.startswith("-")}
    assert named - TARGETS == set()


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".zensical.toml", tmp_path)
    write = [sys.executable, "-m", "docs.reference.generate", str(tmp_path / "build" / "pages")]
    subprocess.run(write, cwd=ROOT, check=True, capture_output=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", ".zensical.toml"]
    built = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    missing = [page for page in pages if page.name != "index" and not _built(tmp_path, page)]
    assert missing == []
    assert "Usage" in (tmp_path / "build" / "docs" / "commands" / "index.html").read_text(encoding="utf-8")


def _built(folder: Path, page: Path) -> bool:
    return (folder / "build" / "docs" / page / "index.html").is_file()


def test_a_wrong_command_in_a_page_is_found() -> None:
    text = "```sh\n$ DB=x .venv/bin/compilewatch run --suite smoke --no-such | tee log\ncompilewatch rum\n```"
    found = [unknown_words(words_of(typed.line, "compilewatch") or []) for typed in commands(text)]
    assert found == [["--no-such"], ["rum"]]


def test_a_broken_link_in_a_page_is_found() -> None:
    text = "[here](README.md) [there](no-such.md) [up](CONTRIBUTING.md#no-such-heading) [web](https://example.org)"
    page = Path("page.md")
    assert broken_links(page, text) == ["page.md: no-such.md", "page.md: CONTRIBUTING.md#no-such-heading"]
