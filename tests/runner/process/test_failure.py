"""The line of a log that names why a compilation failed."""

from __future__ import annotations

import pytest

from compilewatch.runner.process.failure import with_cause

SAID = "CppCompileError: C++ compile error"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "Output:\n/tmp/a/b.cpp:3:4: error: 'x' was not declared\n/tmp/a/b.cpp:9:1: error: y",
            "b.cpp:3:4: error: 'x' was not declared",
        ),
        (
            "main.c:1:10: fatal error: cuda.h: No such file or directory",
            "main.c:1:10: fatal error: cuda.h: No such file or directory",
        ),
        (
            "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1",
            "ld: cannot find -lcuda: No such file or directory",
        ),
        ("sh: line 1: /opt/bin/g++: command not found", "sh: line 1: /opt/bin/g++: command not found"),
        ("/bin/sh: 1: g++: not found\n", "sh: 1: g++: not found"),
        ("ptxas fatal   : Value 'sm_999' is not defined", "ptxas fatal : Value 'sm_999' is not defined"),
    ],
)
def test_the_first_line_that_names_a_cause_is_told(log: str, cause: str) -> None:
    assert with_cause(SAID, f"Traceback (most recent call last):\n{log}") == f"{SAID}: {cause}"


@pytest.mark.parametrize(
    "log", ["", "warning: slow", "torch._inductor.exc.InductorError: CppCompileError: C++"]
)
def test_without_one_the_message_stands_alone(log: str) -> None:
    assert with_cause(SAID, log) == SAID
