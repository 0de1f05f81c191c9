"""Texts as cells of a CSV file that a spreadsheet shows and does not run."""

from __future__ import annotations

# What a spreadsheet takes for the beginning of a formula, the wide forms in some languages:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def harmless(text: str) -> str:
    """`text`, behind an apostrophe where it begins like a formula. For texts alone: a number is none."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
