"""Tables as the benchmarks print them: Markdown, one line after the other."""

from __future__ import annotations

from collections.abc import Sequence


def line(cells: Sequence[object]) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(cells: Sequence[str]) -> None:
    print()
    line(cells)
    line(["---"] * len(cells))


def figure(value: float) -> str:
    return f"{value:.3f}"
