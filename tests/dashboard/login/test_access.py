"""Who may do what: the order of roles, who is here, and what is said to those who may not."""

import re
from collections.abc import Iterator

import pytest

from compilewatch.dashboard.login import access
from compilewatch.dashboard.login.access import AccessError, Person, Role


@pytest.fixture(autouse=True)
def no_login() -> Iterator[None]:
    yield
    access.identify_people_by(None)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.VIEWER, {Role.VIEWER}),
        (Role.EDITOR, {Role.VIEWER, Role.EDITOR}),
        (Role.OPERATOR, {Role.VIEWER, Role.EDITOR, Role.OPERATOR}),
    ],
)
def test_a_role_includes_those_before_it(role: Role, allowed: set[Role]) -> None:
    assert {other for other in Role if Person("ada", role).may(other)} == allowed


def test_without_login_whoever_is_here_is_the_operator() -> None:
    assert access.person_here() == Person(None, Role.OPERATOR)
    assert access.require(Role.OPERATOR) == Person(None, Role.OPERATOR)


def test_with_login_the_person_is_asked_for_at_every_call() -> None:
    people = iter([Person("ada", Role.EDITOR), None])
    access.identify_people_by(lambda _: next(people))
    assert access.person_here() == Person("ada", Role.EDITOR)
    with pytest.raises(AccessError, match=re.escape("Your session has ended.")):
        access.person_here()


def test_too_low_a_role_is_refused_in_a_sentence() -> None:
    access.identify_people_by(lambda _: Person("ada", Role.VIEWER))
    with pytest.raises(AccessError, match="needs the role editor, and you are signed in as viewer"):
        access.require(Role.EDITOR)
