"""The fenced blocks of a page: commands, what they print, and the files that they need."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELLS = {"sh", "bash", "shell", "console"}
ENDS_COMMAND = {"|", "||", "&&", ";", ">", ">>", "2>", "<", "&"}


@dataclass(frozen=True)
class Typed:
    """One command of a page, without its comment, and what the page says that it prints."""

    line: str
    printed: str | None = None

    @property
    def program(self) -> str:
        """What is run, whatever variables are set before."""
        words = self.line.split()
        return next((word for word in words if not re.match(r"[A-Z_]+=", word)), "")


def prose(text: str) -> str:
    """Return `text` without its fenced blocks."""
    return FENCE.sub("", text)


def blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks in one of `languages`."""
    return [body for language, body in FENCE.findall(text) if language in languages]


def commands(text: str) -> list[Typed]:
    """Return the commands of the shell blocks in `text` in order, continued lines joined."""
    found = []
    for language, body in FENCE.findall(text):
        joined = body.replace("\\\n", " ")
        if language == "console":
            found += [_with_output(part) for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]]
        elif language in SHELLS:
            found += [Typed(_bare(line)) for line in joined.splitlines() if _bare(line)]
    return found


def words_of(line: str, program: str) -> list[str] | None:
    """Return the arguments of `program` if the line runs it, whatever variables are set before, else None."""
    words = shlex.split(line, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if not words or Path(words[0]).name != program:
        return None
    end = next((at for at, word in enumerate(words) if word in ENDS_COMMAND), len(words))
    return words[1:end]


def _with_output(part: str) -> Typed:
    line, _, printed = part.partition("\n")
    return Typed(_bare(line), printed or None)


def _bare(line: str) -> str:
    """Without the comment behind it; a # inside of a word is none."""
    return re.sub(r"(?:^|\s+)#\s.*$", "", line).strip().removeprefix("$ ")
