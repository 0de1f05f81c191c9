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
def names_of_tests() -> set[str]:
    """The names of all tests of the project."""
    paths = [path for path in project_files() if path.parts[0] == "tests" and path.name.startswith("test_")]
    return {
        name
        for path in paths
        for name in re.findall(r"^def (test_\w+)", (ROOT / path).read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_promise_names_a_test_that_exists(document: str) -> None:
    assert (
        set(re.findall(r"`(test_\w+)`", (ROOT / document).read_text(encoding="utf-8"))) - names_of_tests()
        == set()
    )


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
