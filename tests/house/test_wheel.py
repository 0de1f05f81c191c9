"""What is shipped: one package of the three rooms, and nothing else of the project."""

import subprocess
import sys
import zipfile
from pathlib import Path

import compilewatch
from tests.house.tracked import PACKAGE, ROOMS, copy_files, packaged_files, project_files


def test_the_wheel_holds_the_rooms_the_recorded_histories_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    measured = {path for path in project_files() if path.match("docs/measured/**/*.jsonl")}
    measured |= {path for path in project_files() if path.match("docs/measured/*.jsonl")}
    product = {path for path in project_files() if path.parts[0] in (PACKAGE, *ROOMS)}
    beside = ("pyproject.toml", "README.md", "LICENSE", "tests/house/test_wheel.py")
    copy_files({*product, *measured, *map(Path, beside)}, source)
    # What pip calls, without pip, which copies the folder and asks for the metadata first.
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    data = f"compilewatch-{compilewatch.__version__}.data/data/share/compilewatch"
    packaged = {path.as_posix() for path in packaged_files()}
    assert shipped == packaged | {f"{data}/{path.name}" for path in measured}
