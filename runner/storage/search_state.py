"""What a search over builds has measured, on disk: after a kill the same command goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from db.errors import CompilewatchError

State = TypeVar("State", bound=BaseModel)


def load_state(path: Path, kind: type[State]) -> State | None:
    """The state at `path`, None where there is none. Raises CompilewatchError where it cannot be read."""
    try:
        return kind.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise CompilewatchError(f"{path} cannot be read.", "Delete it to begin the search anew.") from error


def save_state(path: Path, state: BaseModel) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_suffix(".tmp")
    waiting.write_text(state.model_dump_json(indent=2) + "\n", encoding="utf-8")
    waiting.replace(path)
