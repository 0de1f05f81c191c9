"""Takes the pictures beside it from the real dashboard over the demo: `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect

from compilewatch.db.engine.session import open_database
from compilewatch.runner.cli.stored.demo import fill
from tests.dashboard.serving import served
from tests.e2e.browser import chromium, new_page, open_at

HERE = Path(__file__).parent

# elementwise compiled by torch 2.15.0, in its CPU's history.
TRIAL = "01M7XR4D5FRRH03BD0NWMVVCSQ"

# The machine that took up six releases of torch.
RELEASES = "machine=two-core-epyc"

# Picture -> title of the page, its address, height of the window.
PICTURES: dict[str, tuple[str, str, int]] = {
    "overview": ("Today", "/", 1000),
    "history": ("Models", f"/workload?axis=torch&focus=elementwise&{RELEASES}", 1040),
    "upgrade": ("Upgrade", f"/upgrade?{RELEASES}", 1000),
    "modes": ("Models", f"/modes?{RELEASES}", 900),
    "break-even": ("Models", f"/break-even?focus=elementwise&{RELEASES}", 1000),
    "cold-start": ("Models", f"/cold-start?{RELEASES}", 900),
    "trial": ("Models", f"/trial?trial={TRIAL}", 1000),
    "inbox": ("Inbox", "/regressions", 700),
    "sizes": ("Models", "/sizes?machine=sweep-box", 900),
    "runs": ("Runs", "/runs", 900),
}


def main() -> int:
    """Fill a new database as the demo does, serve it, and photograph every page in `PICTURES`."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/history.db"
        with open_database(url, migrate=True) as database:
            fill(database)
        with served(url, Path(directory) / "log") as server, chromium() as browser:
            for name, (title, address, height) in PICTURES.items():
                with new_page(browser, server.origin, width=1440, height=height) as (page, _):
                    open_at(page, server.origin + address, title)
                    # The browser draws tables and charts after the script has ended.
                    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=60_000)
                    page.wait_for_timeout(1_500)
                    page.screenshot(path=HERE / f"{name}.png")
                sys.stderr.write(f"docs/images/{name}.png\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
