"""What is shipped: the three rooms, and nothing else of the project."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import db
from tests.house.tracked import ROOMS, ROOT, project_files


def test_the_wheel_holds_the_rooms_the_recorded_histories_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    rooms = {path.as_posix() for path in project_files() if path.parts[0] in ROOMS}
    measured = {path.as_posix() for path in project_files() if path.match("docs/measured/**/*.jsonl")}
    measured |= {path.as_posix() for path in project_files() if path.match("docs/measured/*.jsonl")}
    for name in (*rooms, *measured, "pyproject.toml", "README.md", "LICENSE", "tests/house/test_wheel.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    # What pip calls, without pip, which copies the folder and asks for the metadata first.
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    data = f"compilewatch-{db.__version__}.data/data/share/compilewatch"
    assert shipped == rooms | {f"{data}/{Path(name).name}" for name in measured}
