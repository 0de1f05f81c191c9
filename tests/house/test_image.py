"""The image, built and started without an engine: what it promises, asked of the running container.

Packages come from the caller's pip and apt, as in a build; the container itself reaches nobody.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.house import image_base
from tests.house.container import Container
from tests.house.image import Build, Image

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]
USER = "10001"
START_S = 270
"""How long HEALTHCHECK lets the container come up: its `--start-period` and three times its `--interval`."""
STOP_S = 10
"""What an engine waits after SIGTERM before it kills."""
# Says each folder in which the user can make a file; /proc and /sys are the kernel's.
WRITABLE = """
import contextlib, os, tempfile
for folder, names, _ in os.walk("/"):
    if folder == "/":
        names[:] = sorted({*names} - {"proc", "sys"})
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder):
        print(folder)
"""
FETCH = """
import sys
from urllib.request import urlopen
with urlopen("http://127.0.0.1:8501" + sys.argv[1], timeout=60) as answer:
    print(answer.status, answer.headers.get_content_type())
    print(answer.read().decode())
"""


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    with tempfile.TemporaryDirectory(prefix="compilewatch-image-") as folder:
        try:
            image_base.require_means()
            yield Build(Path(folder), {}, lambda line: print(line, flush=True)).image()
        except image_base.Unavailable as missing:
            pytest.skip(str(missing))
        except subprocess.CalledProcessError as failed:
            raise pytest.fail.Exception(f"{failed.cmd[-1]}\n{failed.output}", pytrace=False) from None


@pytest.fixture(scope="module")
def start(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Container]:
    """Makes a container of the image on one volume; words replace those of CMD."""
    folder = tmp_path_factory.mktemp("image")
    volume = folder / "volume"
    subprocess.run(["cp", "-a", str(image.inside("/data")), str(volume)], check=True)
    folder.chmod(0o711)

    def container(*words: str) -> Container:
        command = [*image.entrypoint, *(words or image.command)]
        log = folder / f"{'-'.join(words[:1]) or 'default'}.log"
        return Container(image.root, volume, image.process(), command, log)

    return container


@pytest.fixture(scope="module")
def dashboard(image: Image, start: Callable[..., Container]) -> Iterator[Container]:
    """The container as the image starts it, once its own check says that it is well."""
    with start() as running:
        began = time.monotonic()
        while (checked := running.run(*image.check)).returncode != 0:
            assert running.outer.poll() is None, running.printed()
            assert time.monotonic() - began < START_S, f"{checked.stdout}\n{running.printed()}"
            time.sleep(0.5)
        print(f"HEALTHCHECK passes after {time.monotonic() - began:.1f} s")
        yield running


def fetched(container: Container, path: str) -> str:
    """What the page of the container's own server says, its status and type first."""
    done = container.run("python3", "-c", FETCH, path)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_everything_in_it_is_a_user_without_any_right(dashboard: Container) -> None:
    assert dashboard.first().cmdline()[:2] == ["/usr/bin/tini", "--"]
    processes = dashboard.processes()
    assert len(processes) > 1
    for process in processes:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
        status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        assert (status["Uid"], status["Gid"], status["Groups"]) == ([USER] * 4, [USER] * 4, [])
        assert {int(status[name][0], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == ["1"]


def test_it_writes_to_its_volume_and_to_tmp_alone(dashboard: Container) -> None:
    """And to /dev/shm, which every engine gives: shared memory is made there."""
    found = [Path(line) for line in dashboard.run("python3", "-c", WRITABLE).stdout.splitlines()]
    places = [Path("/data"), Path("/tmp"), Path("/dev/shm")]
    assert set(places) <= set(found)
    assert [folder for folder in found if not any(folder.is_relative_to(place) for place in places)] == []


def test_the_page_answers(dashboard: Container) -> None:
    page = fetched(dashboard, "/")
    assert page.startswith("200 text/html")
    assert "<title>" in page
    assert fetched(dashboard, "/healthz").startswith("200 ")


def test_it_names_everything_that_it_holds(image: Image, dashboard: Container) -> None:
    bill = json.loads(image.inside("/opt/compilewatch/sbom.cdx.json").read_text(encoding="utf-8"))
    listed = dashboard.run("pip", "list", "--format", "json")
    assert listed.returncode == 0, listed.stdout
    held = {canonicalize_name(each["name"]): each["version"] for each in json.loads(listed.stdout)}
    assert {canonicalize_name(each["name"]): each["version"] for each in bill["components"]} == held
    assert {"torch", "streamlit", "psycopg", "transformers"} <= held.keys()
    checked = dashboard.run("pip", "check")
    assert (checked.returncode, checked.stdout.strip()) == (0, "No broken requirements found.")
    print(f"the bill of materials names {len(held)} packages, torch {held['torch']}")


def test_a_compiled_trial_is_measured_and_shown(
    image: Image, start: Callable[..., Container], dashboard: Container
) -> None:
    words = ("run", "-w", "elementwise", "-s", "eager", "-s", "default", "--trials", "1", "--json")
    with start(*words) as runner:
        # No dashboard is in this one: the check of the image can fail.
        assert runner.run(*image.check).returncode != 0
        assert runner.outer.wait(600) == 0, runner.printed()
    rows = json.loads(fetched(dashboard, "/api/v1/trials").partition("\n")[2])["rows"]
    compiled = [row for row in rows if row["strategy"] == "default" and row["workload"] == "elementwise"]
    assert [row["status"] for row in compiled] == ["ok"]
    print(
        f"elementwise · default: {compiled[0]['samples']} samples, numbers {compiled[0]['numerics_status']}"
    )


def test_what_is_left_behind_is_reaped(dashboard: Container) -> None:
    done = dashboard.run("sh", "-c", "sleep 3 >/dev/null 2>&1 &")
    assert done.returncode == 0, done.stdout
    (orphan,) = [each for each in dashboard.processes() if each.name() == "sleep"]
    assert orphan.ppid() == dashboard.first().pid
    deadline = time.monotonic() + START_S
    while orphan.is_running():
        assert time.monotonic() < deadline, f"{orphan} is still there"
        time.sleep(0.1)


def test_it_ends_when_told_and_leaves_a_sound_database(
    start: Callable[..., Container], dashboard: Container
) -> None:
    code, seconds = dashboard.stop()
    print(f"ended with {code} {seconds:.1f} s after SIGTERM")
    assert seconds < STOP_S
    assert code in {0, 143}
    assert "Traceback" not in dashboard.printed()
    with start("db", "check") as checking:
        assert checking.outer.wait(START_S) == 0, checking.printed()
    print(checking.printed())
