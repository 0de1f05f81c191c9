"""Every option and argument of every command, given what it cannot be: a sentence, the next step, exit 2."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.house.tracked import ROOT

LIBRARY_WORDS = re.compile(
    r"Value error|Input should|Unable to|valid (?:integer|number|string)|pydantic|sqlalchemy|Traceback"
    r"|\b[A-Z]\w+(?:Error|Exception)\b"
)
# These measure, serve, install or start a process that draws: each has tests of its own.
LONG = {
    ("run",),
    ("dashboard",),
    ("demo",),
    ("reproduce",),
    ("worker",),
    ("doctor",),
    ("builds", "create"),
    ("report", "create"),
}
NONSENSE = "no such\x07 thing"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, by its words."""
    for name in group.commands:
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def held(parameter: Any) -> Any:
    """The type of one value."""
    annotation = parameter.type_descriptor.annotation
    return next(iter(get_args(annotation)), annotation)


def cannot_be(parameter: Any) -> tuple[str, ...]:
    """Words that the parameter's type refuses; none for a text, a path or a switch."""
    kind = held(parameter)
    if kind in (int, float):
        low = parameter.type_descriptor.parameter_info.min
        return ("x", "1e999" if kind is int else "1,5", *(() if low is None else (str(low - 1),)))
    return ("maybe",) if issubclass(kind, Enum) else ()


def typed(command: Any, parameter: Any, word: str) -> list[str]:
    """`word` for `parameter`, and something for every argument that must be there."""
    words = [] if parameter.param_type_name == "argument" else [parameter.opts[0], *[word] * parameter.nargs]
    arguments = [other for other in command.params if other.param_type_name == "argument"]
    needed = [other for other in arguments if other.required or other is parameter]
    return words + [word if other is parameter else "latest" for other in needed]


REFUSED = [
    (*path, *typed(command, parameter, word))
    for path, command in COMMANDS.items()
    for parameter in command.params
    for word in cannot_be(parameter)
]
TEXTS = [
    (*path, *typed(command, parameter, NONSENSE))
    for path, command in COMMANDS.items()
    if path not in LONG
    for parameter in command.params
    if held(parameter) in (str, Path) and parameter.name not in ("config", "output")
]
FORMS = {"--json": (), "--csv": (), "--markdown": (), "--issue": (), "--script": ("-",)}
"""Options that say in which form a command answers, and their values."""
TWO_FORMS = [
    (*path, *("latest" for each in command.params if each.required), *both)
    for path, command in COMMANDS.items()
    for both in permutations([each for option in command.params for each in option.opts if each in FORMS], 2)
]


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of a few recorded trials."""
    folder = tmp_path_factory.mktemp("seeded")
    history = (ROOT / "docs/measured/cpu-history.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "few.jsonl").write_text("\n".join(history[:6]), encoding="utf-8")
    database = f"sqlite:///{folder / 'compilewatch.db'}"
    assert exit_code_of(app, ["import", str(folder / "few.jsonl"), "--db", database]) == 0
    return folder


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Sequence[str]], str]:
    """Types words in an empty folder: what stands on standard error. Nothing is printed or left besides."""

    def typed(words: Sequence[str]) -> str:
        monkeypatch.chdir(tmp_path)
        assert exit_code_of(app, list(words)) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert list(tmp_path.iterdir()) == []
        return shown.err

    return typed


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_value_of_another_type(words: tuple[str, ...], refused: Callable[[Sequence[str]], str]) -> None:
    shown = refused(words)
    first, second = shown.splitlines()
    assert first.startswith("compilewatch: Invalid value for ")
    assert first.endswith(".")
    assert not LIBRARY_WORDS.search(shown), shown
    assert second.startswith("  Try `compilewatch ")


def test_commands_with_two_forms_are_known() -> None:
    assert {words[0] for words in TWO_FORMS} == {"list", "compare", "gate", "reproduce"}


@pytest.mark.parametrize("words", TWO_FORMS, ids=" ".join)
def test_two_forms_of_one_answer(words: tuple[str, ...], refused: Callable[[Sequence[str]], str]) -> None:
    typed = [part for word in words for part in (word, *FORMS.get(word, ()))]
    first, second = words[-2:]
    assert refused(typed).splitlines() == [
        f"compilewatch: {first} and {second} are two forms of one answer.",
        "  Choose one of them.",
    ]


@pytest.mark.parametrize("words", TEXTS, ids=lambda words: " ".join(words).replace("\x07", "^G"))
def test_a_text_that_means_nothing(
    words: tuple[str, ...],
    seeded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copy(seeded / "compilewatch.db", tmp_path)
    monkeypatch.chdir(tmp_path)
    code = exit_code_of(app, list(words))
    shown = capfd.readouterr()
    assert code in (0, 1, 2), shown.err
    assert not LIBRARY_WORDS.search(shown.err), shown.err
    assert "\x07" not in shown.err
    if code == 2:
        sentence = next(line for line in shown.err.splitlines() if line.startswith("compilewatch: "))
        assert sentence.endswith((".", "?")), shown.err
        assert shown.err.splitlines()[-1].startswith("  "), shown.err
