"""What docs/reliability.md and docs/security.md promise: each sentence has a test, and that test exists."""

import ast
import re
from functools import cache

import pytest

from tests.house.tracked import ROOT, project_files, room_files

DOCUMENTS = ("docs/reliability.md", "docs/security.md")
FORBIDDEN = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
FORBIDDEN_CALLS = {("os", "system"), ("os", "popen"), ("yaml", "load"), ("torch", "load")}
# The worker of a measured process compiles and runs workloads: that is what it is for.
MEASURES = ("runner/worker/", "runner/workloads/")


@cache
def definitions() -> list[ast.FunctionDef]:
    """Every test of the project."""
    return [
        node
        for path in project_files()
        if path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]


def promises(document: str) -> list[tuple[str, list[str]]]:
    """Each row of a table of promises: the sentence, and the names of its tests."""
    found, in_table = [], False
    for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line == "| promise | test |":
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            found.append((cells[0], re.findall(r"`(test_\w+)`", cells[1])))
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_promise_names_a_test_that_exists(document: str) -> None:
    found = promises(document)
    assert len(found) > 15
    assert [sentence for sentence, tests in found if not tests] == []
    assert [sentence for sentence, _ in found if not sentence.endswith((".", "`"))] == []
    named = set(re.findall(r"`(test_\w+)`", (ROOT / document).read_text(encoding="utf-8")))
    assert named - {node.name for node in definitions()} == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_test_behind_a_promise_is_one_and_is_run(document: str) -> None:
    """Not another of the same name, and none that is left out or may fail."""
    named = set(re.findall(r"`(test_\w+)`", (ROOT / document).read_text(encoding="utf-8")))
    behind = [node for node in definitions() if node.name in named]
    assert sorted(node.name for node in behind) == sorted(named)
    idle = [
        node.name
        for node in behind
        if any(isinstance(part, ast.Attribute) and part.attr in {"skip", "xfail"} for part in ast.walk(node))
    ]
    assert idle == []


def test_nothing_is_unpickled_evaluated_or_given_to_a_shell() -> None:
    wrong = []
    for path in room_files():
        if path.suffix != ".py" or path.as_posix().startswith(MEASURES):
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                wrong += [
                    f"{path}:{node.lineno}" for name in names if name.split(".")[0] in FORBIDDEN_MODULES
                ]
            if isinstance(node, ast.Call) and _is_dangerous(node):
                wrong.append(f"{path}:{node.lineno}")
    assert wrong == []


def _is_dangerous(call: ast.Call) -> bool:
    shell = any(
        word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
        for word in call.keywords
    )
    match call.func:
        case ast.Name(id=name):
            return name in FORBIDDEN or shell
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return (module, name) in FORBIDDEN_CALLS or shell
    return shell
