"""The pictures of every page that people looked at: `make look` puts them into tests/e2e/screens.

They are kept for the eye, to see in a change what became of a page; no test compares them dot by dot, since
times and machines differ from one taking to the next.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from PIL import Image

from dashboard.links.links import PAGES, Page

KEPT = Path(__file__).parent / "screens"
WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
# Text of 13 px stays legible; the 44 pictures have some 3 MB.
_QUALITY = 60


def page_name(page: Page) -> str:
    """What pictures of `page` are called by."""
    return page.value or "overview"


def kept_names() -> list[str]:
    """The files that are kept: each page, wide and narrow, light and dark."""
    return [
        f"{page_name(page)}-{width}-{scheme}.webp" for page in Page for width in WIDTHS for scheme in SCHEMES
    ]


def keep(taken: Path, kept: Path = KEPT) -> None:
    """Put the pictures in `taken` that are to be kept into `kept`, small, with an index to look at them."""
    kept.mkdir(exist_ok=True)
    for old in kept.glob("*.webp"):
        old.unlink()
    for name in kept_names():
        with Image.open((taken / name).with_suffix(".png")) as picture:
            picture.convert("RGB").save(kept / name, quality=_QUALITY, method=6)
    (kept / "README.md").write_text(_index(datetime.now(UTC)), encoding="utf-8")


def _index(at: datetime) -> str:
    lines = [
        "# Every page, wide and narrow, light and dark",
        "",
        f"Taken {at:%Y-%m-%d} by `make look` from a database with something on every page"
        " (`tests/e2e/busy.py`), and looked at by eye.",
    ]
    for page in Page:
        lines += ["", f"## {PAGES[page].title}", ""]
        for scheme in SCHEMES:
            names = [f"{page_name(page)}-{width}-{scheme}.webp" for width in WIDTHS]
            shown = [f'<img src="{name}" alt="{name.removesuffix(".webp")}"' for name in names]
            lines.append(f'{shown[0]} width="75%"> {shown[1]} width="20%">')
    return "\n".join(lines) + "\n"
