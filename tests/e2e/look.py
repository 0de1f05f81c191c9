"""Pictures of every page to be looked at by eye: `make look` writes them to build/screens.

From a database with something on every page, from the recorded histories (a CPU, an H100, both) and from an
empty one; wide and narrow, light and dark; whole pages, and contact sheets of them. What a machine can see is
checked on the way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.dashboard.links.links import Link, Page, heading, href
from compilewatch.dashboard.read.database import close_databases
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.service.regressions import standing_regressions
from tests.dashboard.serving import ROOT, served
from tests.e2e import busy
from tests.e2e.browser import chromium, new_page, open_at

SCREENS = ROOT / "build" / "screens"
CPU = (ROOT / "docs" / "measured" / "cpu-history.jsonl",)
H100 = tuple(sorted((ROOT / "docs" / "measured" / "h100").glob("*.jsonl")))
RECORDED = {"cpu": CPU, "h100": H100, "both": CPU + H100}
"""The histories that come with the code, by the name of the database that holds them."""
WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
_HEIGHT = {1440: 900, 390: 844}
_TALLEST = 4_000
_SHEET_COLUMNS = {1440: 3, 390: 6}
_SHEET_HEIGHT = 1_500

FAULTS = """
() => {
    const faults = [];
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) faults.push(`the page is ${page.scrollWidth} px wide`);
    const main = document.querySelector("[data-testid=stMain]");
    if (main.scrollWidth > main.clientWidth) faults.push(`its content is ${main.scrollWidth} px wide`);
    if (main.innerText.includes("This page failed")) faults.push("it failed");
    if (main.innerText.trim().length < 60) faults.push("it is empty");
    for (const word of ["undefined", "NaN", "None", "[object Object]", "<NA>"])
        if (main.innerText.split(/\\s+/).includes(word)) faults.push(`it says ${word}`);
    for (const chart of main.querySelectorAll("[data-testid=stVegaLiteChart]")) {
        const drawn = chart.querySelector("svg, canvas");
        if (!drawn || drawn.getBoundingClientRect().width < 0.6 * chart.getBoundingClientRect().width)
            faults.push("a chart does not fill its place");
        for (const name of chart.querySelectorAll("svg .role-legend text"))
            if (name.getBoundingClientRect().top < drawn.getBoundingClientRect().top - 1)
                faults.push(`the legend of a chart is cut above ${name.textContent}`);
    }
    return faults;
}
"""


@dataclass(frozen=True)
class Shot:
    """A view to photograph, and what its picture is called."""

    name: str
    link: Link

    @property
    def title(self) -> str:
        return heading(self.link.page)


def shots(url: str) -> list[Shot]:
    """Every page as it opens, and the parts of pages that open on a click."""
    found = [Shot(page.value or "overview", Link(page=page)) for page in Page]
    with open_database(url, read_only=True) as database:
        trials, regressions = trials_frame(database), standing_regressions(database)
    if regressions:
        chosen = regressions[0].regression
        found.append(Shot("regression", Link(page=Page.REGRESSIONS, regression=(chosen.regression_id,))))
        case = Link(page=Page.UPGRADE, focus=chosen.row.workload, focus_strategy=chosen.row.strategy)
        found.append(Shot("upgrade-case", case))
    compiled = trials[(trials["strategy_kind"] == "compile") & (trials["status"] == "ok")]
    failed = trials[trials["status"] == "failed"]
    for name, some in (("one-trial", compiled), ("failed-trial", failed)):
        if not some.empty:
            found.append(Shot(name, Link(page=Page.TRIAL, trial=str(some.iloc[-1]["trial_id"]))))
    if not compiled.empty:
        focus = str(compiled.iloc[-1]["workload"])
        found += [
            Shot(f"history-{axis}", Link(page=Page.WORKLOAD, focus=focus, axis=axis))
            for axis in ("time", "torch")
        ]
    return found


def photograph(
    browser: Browser, origin: str, wanted: list[Shot], folder: Path, width: int, scheme: str
) -> dict[str, list[str]]:
    """A picture of each view into `folder`. What is wrong by what a machine can see, by picture."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong: dict[str, list[str]] = {}
    with new_page(browser, origin, width=width, height=_HEIGHT[width], scheme=scheme) as (page, trouble):
        for shot in wanted:
            page.set_viewport_size({"width": width, "height": _HEIGHT[width]})
            open_at(page, f"{origin}/{href(shot.link)}", shot.title)
            _whole(page, width)
            name = f"{shot.name}-{width}-{scheme}.png"
            page.screenshot(path=folder / name)
            found = [*page.evaluate(FAULTS), *trouble.found]
            trouble.found.clear()
            if found:
                wrong[name] = found
    return wrong


def _whole(page: Tab, width: int) -> None:
    """Make the window as high as the page, once everything is drawn."""
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(600)
    content = "document.querySelector('[data-testid=stMain]').scrollHeight"
    height = max(_HEIGHT[width], min(_TALLEST, int(page.evaluate(content))))
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(600)


def contact_sheet(pictures: list[Path], target: Path, columns: int) -> None:
    """`pictures` side by side, each under its name, cut where they are longer than a sheet."""
    opened = [Image.open(path).convert("RGB") for path in pictures]
    cell = 1_800 // columns
    shrunk = [image.resize((cell, image.height * cell // image.width)) for image in opened]
    height = min(_SHEET_HEIGHT, max(image.height for image in shrunk))
    sheet = Image.new("RGB", (cell * len(shrunk), height + 18), "#888888")
    pen = ImageDraw.Draw(sheet)
    for place, (path, image) in enumerate(zip(pictures, shrunk, strict=True)):
        sheet.paste(image.crop((0, 0, cell - 4, min(height, image.height))), (place * cell, 18))
        pen.text((place * cell + 4, 3), path.stem, fill="#ffffff")
    sheet.save(target)


def sheets(folder: Path) -> None:
    """Contact sheets of the pictures in `folder`, light and dark, wide and narrow apart."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            pictures = sorted(folder.glob(f"*-{width}-{scheme}.png"))
            columns = _SHEET_COLUMNS[width]
            for number, first in enumerate(range(0, len(pictures), columns)):
                target = folder / f"sheet-{width}-{scheme}-{number}.jpg"
                contact_sheet(pictures[first : first + columns], target, columns)


def databases(directory: Path) -> Iterator[tuple[str, str]]:
    """The name and address of each database to photograph."""
    addresses = {name: f"sqlite:///{directory}/{name}.db" for name in ("busy", *RECORDED, "empty")}
    busy.fill(addresses["busy"], datetime.now(UTC))
    close_databases()
    for name in RECORDED:
        recorded(name, addresses[name])
    open_database(addresses["empty"], migrate=True).close()
    yield from addresses.items()


def recorded(name: str, url: str) -> None:
    """Import the recorded histories of `name` into the database at `url`."""
    files = [str(path) for path in RECORDED[name]]
    command = [sys.executable, "-m", "compilewatch.runner", "import", *files, "--db", url]
    subprocess.run(command, cwd=ROOT, check=True)


def main(arguments: list[str]) -> int:
    """Photograph the databases named, all of them where none is. 1 where something is wrong."""
    failed = False
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        for name, url in databases(Path(directory)):
            if arguments and name not in arguments:
                continue
            folder = SCREENS / name
            with served(url, Path(directory) / f"{name}.log") as server:
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        wrong = photograph(browser, server.origin, shots(url), folder, width, scheme)
                        for picture, faults in wrong.items():
                            failed = True
                            sys.stderr.write(f"{name}/{picture}: {'; '.join(faults)}\n")
            sheets(folder)
            sys.stderr.write(f"{os.path.relpath(folder, ROOT)}: {len(list(folder.glob('*.png')))} pictures\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
