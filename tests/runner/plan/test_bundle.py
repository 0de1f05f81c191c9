"""Several modules become one file that does the same, or are refused with the reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compilewatch.runner.plan.bundle import Bundle, BundleError

Write = Callable[[str, str], None]


@pytest.fixture
def modules(tmp_path: Path):
    """Writes modules and gives the bundle that carries exactly those."""

    def locate(module: str) -> Path | None:
        file = tmp_path / f"{module.replace('.', '/')}.py"
        return file if file.is_file() else None

    def write(**sources: str) -> Bundle:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        return Bundle(locate)

    return write


def _run(bundle: Bundle, then: str) -> str:
    source = f"from __future__ import annotations\n{bundle.imports()}\n{bundle.body()}\n{then}\n"
    command = [sys.executable, "-I", "-c", source]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr + source
    return finished.stdout.strip()


def test_what_is_needed_comes_in_an_order_that_works(modules):
    bundle = modules(
        shapes="""
from __future__ import annotations
import math
from dataclasses import dataclass

# Of a circle.
TURN = 2 * math.pi

def unused():
    return left_out

@dataclass(frozen=True)
class Circle:
    radius: float = 1.0

    def length(self) -> float:
        return around(self)

def around(circle: Circle) -> float:
    return circle.radius * TURN
""",
        main="from shapes import Circle\nimport json\n\ndef total(x):\n    return Circle(x).length()\n",
    )
    bundle.add("main", "total")
    assert _run(bundle, "print(round(total(2), 3))") == "12.566"
    assert "# Of a circle.\nTURN" in bundle.body()
    assert "unused" not in bundle.body()
    assert "json" not in bundle.imports()


def test_a_whole_module_keeps_what_it_runs(modules):
    bundle = modules(main="import sys\nNAMES = []\nNAMES.append('here')\n\ndef main():\n    return NAMES\n")
    bundle.add_whole("main")
    assert _run(bundle, "print(*main())") == "here"


def test_the_same_definition_twice_is_one(modules):
    bundle = modules(
        a="STEP = 3\n\ndef one():\n    return STEP\n",
        b="STEP = 3\n\ndef two():\n    return STEP\n",
        main="from a import one\nfrom b import two\n\ndef both():\n    return one() + two()\n",
    )
    bundle.add("main", "both")
    assert _run(bundle, "print(both())") == "6"
    assert bundle.body().count("STEP = 3") == 1


@pytest.mark.parametrize(
    ("main", "says"),
    [
        ("import a\n\ndef f():\n    return a.x\n", "imports a as a module"),
        ("from a import x as y\n\ndef f():\n    return y\n", "under another name"),
        ("from a import *\n\ndef f():\n    return x\n", "under another name, or everything"),
        ("from . import a\n\ndef f():\n    return a.x\n", "as a module"),
        ("def f():\n    from a import x\n    return x\n", "inside a function"),
        ("from a import g\nx = 2\n\ndef f():\n    return g() + x\n", "defines 'x', which another part"),
    ],
)
def test_what_one_file_cannot_hold_is_refused(modules, main: str, says: str):
    bundle = modules(a="x = 1\n\ndef g():\n    return x\n", main=main)
    with pytest.raises(BundleError, match=says) as caught:
        bundle.add("main", "f")
    assert caught.value.next_step
