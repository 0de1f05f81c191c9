"""Every write of the dashboard asks who it is for, in the write itself; no log line can be forged."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compilewatch.dashboard
from compilewatch.dashboard.login import access
from compilewatch.dashboard.login.access import AccessError, Person, Role
from compilewatch.dashboard.reports.freeze import store_report
from compilewatch.dashboard.write import uploading, writing
from compilewatch.db.errors import OneLine
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import RequestSpec

ROOM = Path(compilewatch.dashboard.__file__).parent
# Which role each write needs; a link that is kept holds nothing that its reader did not send.
WRITES: dict[str, tuple[Role, Callable[[str], object]]] = {
    "ask for a run": (Role.OPERATOR, lambda _: writing.request_run(RequestSpec(), by="ada")),
    "cancel a run": (Role.OPERATOR, lambda _: writing.cancel_run("R", by="ada")),
    "pause a schedule": (Role.OPERATOR, lambda _: writing.set_paused("s", paused=True, by="ada")),
    "keep a report": (Role.EDITOR, lambda url: store_report(url, None)),  # type: ignore[arg-type]
}
FREE = {"write/writing.py keep"}
# Whoever calls these asks first; the command line of reports asks nobody: who types it has the database.
ASKED_BEFORE = {
    *("write/writing.py save", "write/writing.py queue_request", "write/uploading.py _import"),
    *("api/jobs.py _saved", "read/database.py opened", "reports/__main__.py main"),
}
_WRITER = re.compile(r"open_database\((?!.*read_only=True)|opened\(.*read_only=False")
_CHECK = re.compile(r"require\(Role\.|written\(request, Scope\.")


@pytest.fixture(autouse=True)
def no_login() -> Iterator[None]:
    yield
    access.identify_people_by(None)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_re_checks_who_it_is_for(name: str, empty_url: str) -> None:
    role, write = WRITES[name]
    for lower in (each for each in Role if not each.includes(role)):
        access.identify_people_by(lambda _, lower=lower: Person("eve", lower))  # type: ignore[misc]
        with pytest.raises(AccessError, match=f"needs the role {role.value}"):
            write(empty_url)
    access.identify_people_by(lambda _: None)
    with pytest.raises(AccessError, match="session has ended"):
        write(empty_url)


def test_triage_and_uploads_say_why_they_did_not(empty_url: str) -> None:
    access.identify_people_by(lambda _: Person("eve", Role.VIEWER))
    what = writing.triage_decision(["r"], TriageState.EXPECTED, author="eve", note="", url="")
    assert writing.record(empty_url, what) == (str(_refusal()), False)
    upload = uploading.Upload({"a.csv": b""}, "", {})
    assert uploading.bring_in(empty_url, upload) == (str(_refusal()), False)


def _refusal() -> AccessError:
    with pytest.raises(AccessError) as caught:
        access.require(Role.EDITOR)
    return caught.value


def _functions(path: Path) -> dict[str, str]:
    """The source of each function of a file, by the file's name and its own."""
    source, name = path.read_text(encoding="utf-8"), path.relative_to(ROOM).as_posix()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        f"{name} {each.name}": ast.get_source_segment(source, each) or ""
        for each in ast.parse(source).body
        if isinstance(each, kinds)
    }


def test_no_write_of_the_dashboard_is_without_a_check() -> None:
    """A function that opens the database for writing asks for a role too, or for a token of its scope."""
    functions = {name: text for path in ROOM.rglob("*.py") for name, text in _functions(path).items()}
    writers = {name for name, text in functions.items() if _WRITER.search(text)}
    unchecked = {name for name in writers if not _CHECK.search(functions[name])}
    assert unchecked <= FREE | ASKED_BEFORE
    assert len(writers) >= 5


@given(st.text())
def test_one_record_is_one_line(text: str) -> None:
    line = OneLine("%(levelname)s %(message)s").format(_record(text))
    assert len(line.splitlines()) == 1
    assert line.startswith("WARNING ")


def test_a_forged_line_is_seen_as_one() -> None:
    told = "mlp\n2026-11-21 INFO ada signed in\u2028x\x1b[2J"
    line = OneLine("%(levelname)s %(message)s").format(_record(told))
    assert line == "WARNING told: mlp\\n2026-11-21 INFO ada signed in\\u2028x\\x1b[2J"


def test_a_traceback_cannot_pretend_to_be_a_record() -> None:
    try:
        int("x\nINFO forged")
    except ValueError as error:
        record = _record("it failed")
        record.exc_info = (ValueError, error, error.__traceback__)
    first, *rest = OneLine("%(levelname)s %(message)s").format(record).splitlines()
    assert first == "WARNING told: it failed"
    assert rest
    assert all(line.startswith("    ") for line in rest)


def test_no_library_of_the_server_can_be_made_to_forge_a_line() -> None:
    """uvicorn and Streamlit log with formatters of their own, and what failed may quote what was sent."""
    program = """
import logging
from compilewatch.dashboard.__main__ import _log_to_standard_error
_log_to_standard_error()
import uvicorn
uvicorn.Config(lambda: None)
from streamlit.logger import get_logger
ours, servers = logging.getLogger("compilewatch"), logging.getLogger("uvicorn.error")
for log in (ours, servers, get_logger("streamlit.web")):
    try:
        raise ValueError("sent\\nINFO ada signed in as operator")
    except ValueError:
        log.exception("%s failed", "/x\\nINFO eve signed in as operator")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOM.parent, capture_output=True, text=True, check=True
    )
    lines = (done.stdout + done.stderr).splitlines()
    assert sum("failed" in line for line in lines) == 3
    assert [line for line in lines if line.lstrip().startswith("INFO") and not line.startswith("    ")] == []
    assert sum(line.startswith("    ") for line in lines) >= 9
    assert "ValueError" not in "".join(line for line in lines if not line.startswith("    "))


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("compilewatch", logging.WARNING, "f.py", 1, "told: %s", (text,), None)
