"""What a search over builds has measured, on disk: after a kill the same command goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.part_files import part_of
from compilewatch.db.records.ids import identity


class SearchQuestion(BaseModel):
    """What is searched for. Two commands with the same question share their trials."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    folder: ClassVar[str]
    """Where states of these searches lie, below the data directory."""

    workloads: tuple[str, ...] = ()
    """The ids of those in question as they are now: an edited one is another question."""

    @property
    def key(self) -> str:
        """The name of its state."""
        return identity(self.model_dump(mode="json"))

    def path(self, data_dir: Path) -> Path:
        """Where its state is kept."""
        return data_dir / self.folder / f"{self.key}.json"


class SearchState(BaseModel):
    """What is known so far: ids and reasons. What is installed and run comes from the command."""

    model_config = ConfigDict(extra="forbid")

    question: SearchQuestion

    @classmethod
    def load(cls, question: SearchQuestion, data_dir: Path) -> Self:
        """The stored state, else a new one. Raises CompilewatchError for one that cannot be read."""
        path = question.path(data_dir)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls(question=question)
        except (OSError, ValueError, RecursionError) as error:
            raise CompilewatchError(
                f"{path} cannot be read.", "Delete it to begin the search anew."
            ) from error

    def save(self, data_dir: Path) -> None:
        """Whole or not at all. Raises CompilewatchError where the disk refuses."""
        path = self.question.path(data_dir)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part_of(path) as part:
                part.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
                part.replace(path)
        except OSError as error:
            raise CompilewatchError(
                f"{path} cannot be written: {error.strerror}.",
                "Free space or set data_dir to a writable directory.",
            ) from error
