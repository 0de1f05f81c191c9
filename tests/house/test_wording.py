"""What is written is about the project and in plain English: no machine's paths, no dialect."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.shell_blocks import prose
from tests.house.tracked import ROOT, project_files, room_files

BINARY = {".png", ".webp", ".ico", ".woff2", ".db"}
# A test of shortened paths may speak of /home/someone/; nobody lives there.
HOME_OF_A_PERSON = re.compile(r"(?<![\w.])/(?:root|home/(?!someone/)\w+|Users/\w+)/")
REGISTRY_HOST = re.compile(
    "|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", r"deb\." + r"debian\.org"))
)
LARGEST_FILE_BYTES = 1_000_000
# A recorded history is evidence: every sample of every process.
HISTORY = "docs/measured/*-history.jsonl"
LARGEST_HISTORY_BYTES = 3_000_000


def texts() -> list[tuple[Path, str]]:
    """Return each text file of the project with its content."""
    paths = [path for path in project_files() if path.suffix not in BINARY]
    return [(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths]


def test_no_path_of_a_machine() -> None:
    here = re.compile(re.escape(f"{ROOT}/"))
    patterns = (HOME_OF_A_PERSON, here)
    assert [str(path) for path, text in texts() if any(pattern.search(text) for pattern in patterns)] == []


def test_paths_of_a_machine_are_recognized() -> None:
    assert HOME_OF_A_PERSON.search("see " + "/home/" + "ada/notes")
    assert not HOME_OF_A_PERSON.search("/home/someone/notes")
    assert not HOME_OF_A_PERSON.search("https://example.org/home/page/")


def test_no_registry_host() -> None:
    assert [str(path) for path, text in texts() if REGISTRY_HOST.search(text)] == []


def test_no_large_file() -> None:
    sizes = {path: (ROOT / path).stat().st_size for path in project_files()}
    limits = {path: LARGEST_HISTORY_BYTES if path.match(HISTORY) else LARGEST_FILE_BYTES for path in sizes}
    assert {str(path): size for path, size in sizes.items() if size > limits[path]} == {}


# What people read: see "Write for people" in CONTRIBUTING.

PLAINER = {
    r"\btold\b(?!\s+apart)": "shown, printed or sent",
    r"\bkept\b": "stored",
    r"\bseen\b": "shown or observed",
    r"\basked\b": "requested",
    r"\bheard of\b": "sends a heartbeat",
    r"\bas there may be\b": "at the limit of",
    r"\b[Nn]othing of (?:it|them) is\b": "not filed yet",
    r"\bnone of them is named\b": "their effects cannot be told apart",
    r"\bmoved, (?:eager|compiled) did not\b": "only compiled code slowed",
    r"\bnone decided\b": "no slowdown shown",
    r"\bnone confirmed\b": "not confirmed yet",
    r"\b[Bb]eside the numbers\b": "failures and exclusions",
    r"\b(?:took|take|taking) turns\b": "interleaved",
    r"\bLeft out: nobody\b": "none",
    r"\b[Dd]one first\b": "fastest overall",
    r"\b[Ss]hows changes from\b": "smallest detectable change",
    r"\bBring results in\b": "Import results",
    r"\bLook at them\b": "Preview",
    r"\bEvery run$": "Runs",
    r"^Figure$": "Metric",
    r"\bmeasuring program\b": "benchmark harness",
    r"\bOwn time\b": "Self time",
    r"^Of the step$": "% of step",
    r"\bhas no verdict\b": "not compared",
    r"\bWhat was frozen\b": "Frozen reports",
    r"\b[Ss]econd look\b": "confirmation",
    r"\bput down to\b": "explained by",
    r"\bis told below\b": "the fact itself",
    r"\b1 (?:calls|cases|processes|rows|runs|samples|steps|trials)\b": "units.plural",
}
NOUN = re.compile(
    r" (?:(?!over|in|of|for|between)\w+ )?"
    r"(?:arrays|batches|blocks|breaks|builds|calls|cases|days|errors|files|graphs|hosts|hours|jobs"
    r"|kernels|launches|machines|messages|metrics|minutes|points|processes|recompiles|records|regressions|reports"
    r"|requests|rows|runs|samples|schedules|steps|strategies|suites|tokens|trials|workers|workloads)\b"
)
LONGEST_SENTENCE = 20
SENTENCE_ENDS = re.compile(r"(?<=[.!?:;·])[*_)\"]*\s+")
# Code in a string: markup, styles, statements of SQL, programs for another interpreter.
CODE = re.compile(
    r"^\s*<|\{[\w-]+:|\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE)\b|\bimport \w+(?:[.,]|$)", re.MULTILINE
)
# A list of names in a page counts as one word.
CODES = re.compile(r"`[^`]*`(?:(?:,|,? and|,? or)\s+`[^`]*`)*")


@dataclass(frozen=True)
class Text:
    """A text that people read, `{}` for each value; `nouns` follow a value without a plural rule."""

    place: str
    text: str
    nouns: tuple[str, ...] = ()

    def faults(self) -> Iterator[str]:
        """What is wrong with it, and what is better."""
        for pattern, better in PLAINER.items():
            if found := re.search(pattern, self.text):
                yield f"{self.place}: {found[0]!r}: {better}"
        for noun in self.nouns:
            yield f"{self.place}: {noun!r} after a number: units.plural"
        for sentence in SENTENCE_ENDS.split(self.text):
            words = [
                word for word in re.sub(r"\]\([^)]*\)", "]", sentence).split() if re.search(r"[\w{]", word)
            ]
            if len(words) > LONGEST_SENTENCE:
                yield f"{self.place}: {len(words)} words in {' '.join(words[:6])} ..."


def python_texts(path: Path, source: str) -> Iterator[Text]:
    """Every string of a program with a blank in it, but for docstrings and code."""
    tree = ast.parse(source)
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
    for node in ast.walk(tree):
        place = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = Text(place, node.value)
        elif isinstance(node, ast.JoinedStr):
            values = ["{}" if isinstance(v, ast.FormattedValue) else str(v.value) for v in node.values]
            text = Text(place, "".join(values), tuple(_nouns(node)))
        else:
            continue
        if " " in text.text.strip() and not CODE.search(text.text):
            yield text


def _nouns(text: ast.JoinedStr) -> Iterator[str]:
    for value, after in zip(text.values, text.values[1:], strict=False):
        if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
            name = ast.unparse(value.value)
            if (noun := NOUN.match(str(after.value))) and not name.isupper() and "plural(" not in name:
                yield f"{{{name}}}{noun[0]}"


def page_texts(path: Path, text: str) -> Iterator[Text]:
    """Every paragraph, list item and cell of a page."""
    for number, block in enumerate(re.split(r"\n\s*\n", prose(text)), start=1):
        rows = block.lstrip().startswith("|")
        for part in re.split(r"\||\n" if rows else r"\n(?=\s*(?:[-*]|\d+\.) )", block):
            yield Text(f"{path}, paragraph {number}", CODES.sub("`code`", part.strip()))


def test_people_read_plain_english() -> None:
    pages = [path for path in project_files() if path.suffix == ".md" and path.parts[0] != "tests"]
    faults = []
    for path in (*room_files(), *pages):
        if "versions" not in path.parts:
            texts = page_texts if path.suffix == ".md" else python_texts
            source = (ROOT / path).read_text(encoding="utf-8")
            faults += [fault for text in texts(path, source) for fault in text.faults()]
    assert not faults, "\n".join(faults)


# Names in code are nouns that say what is returned. What stands in tables and documents keeps its name.
VERBS = re.compile(
    r"(?:^|_)(?:un)?(?:asked|brought|found|given|gone|heard|judged|kept|looked|noted|prepared|said|seen|settled"
    r"|shelf|told|turns)(?:_|$)"
    r"|Asked|(?<!Not)Found|Given|Judged|Kept|Noted|Prepared|Said|Seen|Settled|Told"
)
STORED_NAMES = {
    *("asked_at", "asked_by", "cancel_asked", "told_due_at", "unseen"),
    *("seen_at", "first_seen_at", "last_seen_at", "service_seen_at"),
}


def names_of(source: str) -> Iterator[str]:
    """Every name that a program gives or uses, or that its docstrings and comments quote."""
    yield from re.findall(r"`(\w+)`", source)
    for node in ast.walk(ast.parse(source)):
        for part in ("id", "attr", "arg", "name"):
            if isinstance(name := getattr(node, part, None), str):
                yield name


def test_names_are_nouns() -> None:
    names = {
        f"{path}: {name}"
        for path in room_files()
        for name in names_of((ROOT / path).read_text(encoding="utf-8"))
        if VERBS.search(name) and name not in STORED_NAMES
    }
    assert names == set()


@pytest.mark.parametrize(
    "source",
    ["told = 1", "def f(kept): ...", "class _Found: ...", "self._asked()", "import judged", "# `kept`"],
)
def test_verbs_as_names_are_recognized(source: str) -> None:
    assert any(VERBS.search(name) for name in names_of(source))


@pytest.mark.parametrize(
    "source",
    [
        'x = f"Steady after {n} calls."',
        'x = "What was asked for is done."',
        f'x = "{"word " * 21}"',
    ],
)
def test_dialect_is_recognized(source: str) -> None:
    assert [fault for text in python_texts(Path("page.py"), source) for fault in text.faults()]


@pytest.mark.parametrize(
    "source",
    [
        "x = f\"Steady after {plural(n, 'call')}.\"",
        'x = "The effects cannot be told apart."',
        '"""What was asked for is done, in a docstring."""',
        'x = f"{TRIALS_A_SIDE} trials show it."',
    ],
)
def test_plain_english_passes(source: str) -> None:
    assert [fault for text in python_texts(Path("page.py"), source) for fault in text.faults()] == []
