"""The upload form in these tests: opened, filled in, and what it has stored."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.trials import trials_frame
from tests.dashboard.conftest import opened

TOLD = {
    "torch": "2.13.0",
    "device": "cuda",
    "device_name": "NVIDIA H200",
    "measured_at": "2026-11-20 18:00",
    "dtype": "float16",
    "task": "inference",
}


def stored(url: str) -> int:
    with open_database(url, read_only=True) as database:
        return len(trials_frame(database))


def page() -> AppTest:
    return opened(Link(page=Page.RUNS))


def looked_at(test: AppTest, *files: tuple[str, bytes], **told: str) -> AppTest:
    if files:
        test.file_uploader[0].set_value([(name, data, "application/octet-stream") for name, data in files])
    for name, text in told.items():
        test.text_input(f"import-{name}").set_value(text)
    return next(b for b in test.button if b.label == "Preview").click().run()
