"""What the sections of the configuration are made of: the base of every table, names, sizes, addresses."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

ShortName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+@:-]*$")
]
Positive = Annotated[int, Field(ge=1)]
# A week: beyond what a trial takes, within what a system call can wait for.
Timeout = Annotated[float, Field(gt=0, le=604_800)]
Device = Annotated[str, StringConstraints(pattern=r"^(auto|cpu|cuda(:\d+)?)$")]
Scope = Annotated[str, StringConstraints(pattern=r"^(full|regional|submodule:[\w.]+)$")]
Sizes = Annotated[tuple[Positive, ...], Field(min_length=1)]
Dtype = Literal["float32", "float16", "bfloat16", "float64"]


def split_list(value: object) -> object:
    """A variable of the environment holds a list as "eager,default"."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _web_address(value: str) -> str:
    """An http or https address with a host. The complaint must not repeat it: it may hold a token."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("an address must be http://HOST... or https://HOST...")
    return value


def secret_web_address(value: SecretStr) -> SecretStr:
    """`value`, which is a web address. Raises ValueError without repeating it."""
    _web_address(value.get_secret_value())
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None

SIZE = "a whole number of at least 1, or a list of them"


class Section(BaseModel):
    """Base of every table of the file: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
