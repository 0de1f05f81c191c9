"""A reader of the Dockerfile: the instructions and flags that ours uses, any other is refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

FLAGS: dict[str, set[str]] = {
    "ARG": set(),
    "FROM": set(),
    "COPY": {"from", "chmod"},
    "RUN": set(),
    "ENV": set(),
    "USER": set(),
    "WORKDIR": set(),
    "VOLUME": set(),
    "EXPOSE": set(),
    "ENTRYPOINT": set(),
    "CMD": set(),
    "HEALTHCHECK": {"interval", "timeout", "start-period", "retries"},
}
"""The instructions that are carried out, each with the flags that are."""
VARIABLE = re.compile(r"\$(?:\{(?P<braced>[^}]*)\}|(?P<plain>\w+))")
PAIR = re.compile(r'(\w+)=("[^"]*"|\S*)\s*')


class Unreadable(Exception):
    """The Dockerfile asks for something that is not carried out here; the message names it."""


@dataclass(frozen=True)
class Instruction:
    """One instruction with its lines joined: `text` is what follows its name and flags."""

    name: str
    flags: Mapping[str, str]
    text: str

    def words(self) -> list[str]:
        """The list of strings of an exec form. Raises Unreadable for a shell form."""
        try:
            words = json.loads(self.text.removeprefix("CMD ") if self.name == "HEALTHCHECK" else self.text)
        except ValueError:
            words = None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Unreadable(f"{self.name} not as a JSON list: {self.text}")
        return words

    def pairs(self) -> dict[str, str]:
        """The variables that an ENV sets. Raises Unreadable where it is not written as NAME=value."""
        found = PAIR.findall(self.text)
        if PAIR.sub("", self.text):
            raise Unreadable(f"{self.name} not as NAME=value: {self.text}")
        return {name: value.strip('"') for name, value in found}


@dataclass(frozen=True)
class Stage:
    """What is between one FROM and the next: `origin` is the image it starts from."""

    origin: str
    name: str | None
    instructions: tuple[Instruction, ...]


def read(text: str, given: Mapping[str, str]) -> list[Stage]:
    """Return the stages of a Dockerfile, with the build arguments `given`. Raises Unreadable."""
    before: dict[str, str] = {}
    stages: list[Stage] = []
    for instruction in instructions(text):
        if instruction.name == "FROM":
            origin, name = _origin(expand(instruction.text, before))
            stages.append(Stage(origin, name, ()))
        elif stages:
            newest = stages[-1]
            stages[-1] = Stage(newest.origin, newest.name, (*newest.instructions, instruction))
        elif instruction.name == "ARG":
            before |= argument(instruction, given)
        else:
            raise Unreadable(f"{instruction.name} before the first FROM")
    return stages


def instructions(text: str) -> list[Instruction]:
    """Return the instructions in order, without comments, continued lines joined. Raises Unreadable."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [_instruction(line) for line in joined.splitlines()]


def argument(instruction: Instruction, given: Mapping[str, str]) -> dict[str, str]:
    """What one ARG brings: the value given, else its default, nothing where there is neither."""
    name, has_default, default = instruction.text.partition("=")
    if name in given:
        return {name: given[name]}
    return {name: default} if has_default else {}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put in the values of $NAME and ${NAME}. Raises Unreadable for any other form."""

    def value(found: re.Match[str]) -> str:
        name = found["braced"] if found["plain"] is None else found["plain"]
        if not re.fullmatch(r"\w+", name):
            raise Unreadable(f"${{{name}}}")
        return variables.get(name, "")

    return VARIABLE.sub(value, text)


def is_in_context(path: str, rules: list[str]) -> bool:
    """Whether a `.dockerignore` of these lines lets a file into the build; the last that fits decides."""
    parts = path.split("/")
    below = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    inside = True
    for rule in (line.strip() for line in rules):
        if not rule or rule.startswith("#"):
            continue
        pattern = _pattern(rule.removeprefix("!").strip("/"))
        if any(pattern.fullmatch(each) for each in below):
            inside = rule.startswith("!")
    return inside


def _instruction(line: str) -> Instruction:
    name, _, rest = line.strip().partition(" ")
    if name not in FLAGS:
        raise Unreadable(name)
    flags: dict[str, str] = {}
    rest = rest.strip()
    while found := re.match(r"--([a-z-]+)(?:=(\S+))?\s+", rest):
        if found[1] not in FLAGS[name] or found[2] is None:
            raise Unreadable(f"{name} {found[0].strip()}")
        flags[found[1]] = found[2]
        rest = rest[found.end() :]
    if "<<" in rest:
        raise Unreadable(f"{name} with a here-document")
    return Instruction(name, flags, rest)


def _origin(text: str) -> tuple[str, str | None]:
    found = re.fullmatch(r"(\S+)(?:\s+AS\s+(\S+))?", text)
    if found is None:
        raise Unreadable(f"FROM {text}")
    return found[1], found[2]


def _pattern(rule: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*|\?)", rule)
    forms = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(forms.get(part, re.escape(part)) for part in parts))
