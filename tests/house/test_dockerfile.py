"""The reader of the Dockerfile takes what ours says as an engine does, and refuses the rest by name."""

import pytest

from tests.house.dockerfile import (
    Instruction,
    Unreadable,
    argument,
    expand,
    instructions,
    is_in_context,
    read,
)
from tests.house.tracked import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
RULES = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def test_ours_is_read_whole() -> None:
    build, last = read(DOCKERFILE, {})
    assert (build.origin, build.name) == ("python:3.11-slim", "build")
    assert (last.origin, last.name) == (build.origin, None)
    assert sum(step.name == "RUN" for step in build.instructions) == DOCKERFILE.count("RUN ") - 1
    assert next(step for step in last.instructions if step.name == "ENTRYPOINT").words()[-1] == "entrypoint"
    check = next(step for step in last.instructions if step.name == "HEALTHCHECK")
    assert check.words()[0] == "python3"
    assert check.flags["interval"] == "30s"


def test_the_check_fails_no_container_that_is_slow_to_start() -> None:
    """On a busy host the dashboard has taken more than 60 s until it answered."""
    last = read(DOCKERFILE, {})[-1]
    check = next(step for step in last.instructions if step.name == "HEALTHCHECK")
    assert check.flags["start-period"] == "180s"


def test_a_base_given_takes_the_place_of_the_default() -> None:
    given = {"BASE": "python:3.11-slim@sha256:0"}
    assert [stage.origin for stage in read(DOCKERFILE, given)] == [given["BASE"]] * 2


def test_lines_are_joined_and_comments_left_out() -> None:
    text = '# first\nRUN one \\\n    # between\n    && two\n\nENV A=1 \\\n    B="2 3"\n'
    run, env = instructions(text)
    assert run.text.split() == ["one", "&&", "two"]
    assert env.pairs() == {"A": "1", "B": "2 3"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ADD a b", "ADD"),
        ('SHELL ["bash"]', "SHELL"),
        ("from scratch", "from"),
        ("FROM --platform=linux/amd64 a", "FROM --platform=linux/amd64"),
        ("FROM a\nRUN --mount=type=cache b", "RUN --mount=type=cache"),
        ("FROM a\nCOPY --link a b", "COPY --link"),
        ("FROM a\nRUN <<END", "here-document"),
        ("RUN true", "before the first FROM"),
        ("ARG A\nFROM ${A:-b}", "A:-b"),
    ],
)
def test_anything_else_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(text, {})
    assert named in str(refused.value)


@pytest.mark.parametrize("text", ["entrypoint --now", '{"a": 1}', "[1]"])
def test_only_the_list_form_starts_something(text: str) -> None:
    with pytest.raises(Unreadable, match="CMD not as a JSON list"):
        Instruction("CMD", {}, text).words()


def test_an_env_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(Unreadable, match="NAME=value"):
        Instruction("ENV", {}, "A 1").pairs()


def test_an_argument_without_a_value_is_not_there() -> None:
    assert argument(Instruction("ARG", {}, "A"), {}) == {}
    assert argument(Instruction("ARG", {}, "A"), {"A": "1", "B": "2"}) == {"A": "1"}
    assert argument(Instruction("ARG", {}, "A=0"), {}) == {"A": "0"}


def test_variables_are_replaced_and_unknown_ones_empty() -> None:
    assert expand("$A/${B}c/$C", {"A": "1", "B": "2"}) == "1/2c/"


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("db/engine/session.py", True),
        ("db/queries/__init__.py", True),
        ("db/__pycache__/session.pyc", False),
        ("db/queries/__pycache__/trials.pyc", False),
        ("docker/requirements.lock", True),
        ("docker/lock.py", False),
        ("tests/conftest.py", False),
        (".env", False),
        ("compilewatch.db", False),
    ],
)
def test_what_comes_into_the_build(path: str, inside: bool) -> None:
    assert is_in_context(path, RULES) is inside
