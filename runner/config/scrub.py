"""What a log may carry into a database that others read: no addresses, no secrets, no home directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_HIDDEN = "[hidden]"
_URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>)\]}]+")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_ASSIGNED = re.compile(
    r"(?i)\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w-]*)(\s*[=:]\s*)(['\"]?)[^\s'\",;]+\3"
)
_KNOWN = re.compile(r"\b(?:hf_|ghp_|gho_|github_pat_|glpat-|sk-|xox[abp]-|AKIA)[A-Za-z0-9_-]{8,}")
_SECRET_NAME = re.compile(r"(?i)token|secret|passw|credential|api_?key|access_?key|database_url|dsn")
_MIN_SECRET = 6


def scrub(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` without URLs, tokens, values of the environment's secret-looking variables, and home paths.

    Control characters that a terminal would obey are dropped.
    """
    source = os.environ if environment is None else environment
    secrets = (
        value for name, value in source.items() if _SECRET_NAME.search(name) and len(value) >= _MIN_SECRET
    )
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    text = _URL.sub("[address]", text)
    text = _BEARER.sub(rf"\1 {_HIDDEN}", text)
    text = _ASSIGNED.sub(rf"\1\2{_HIDDEN}", text)
    text = _KNOWN.sub(_HIDDEN, text)
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + r"(?=[/\s:'\"]|$)", "~", text)
    return "".join(char for char in text if char in "\n\t" or (ord(char) >= 32 and ord(char) != 127))
