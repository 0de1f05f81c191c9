"""What jobs ask the compiler's caches: hits and misses by host, and by what two environments differ."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.cold_start import content
from compilewatch.dashboard.pages.trial.one_trial import trial_parts
from compilewatch.db.cause.caches import first_difference
from compilewatch.db.records.evidence import CacheKeys, CacheLookup
from compilewatch.db.records.trial import Trial
from compilewatch.runner import compilewatch_recorder as recorder
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.worker.compiler import load_caches
from tests.dashboard.conftest import DATABASE
from tests.db.interchange.reading import read
from tests.runner.measuring import FAST_COMPILE

_PROGRAM = """
import os, torch

torch.set_num_threads(1)
torch._inductor.config.compile_threads = 1


def forward(x):
    return x.sin() + 1


x = torch.ones(8)
exec(os.environ.get("PLANTED", ""))
torch.compile(forward, options=globals().get("options"))(x)
"""


def _asked(folder: Path, host: str, *, caches: Path | None = None, **variables: str) -> CacheKeys:
    """What the program asked in a process of its own, with its own caches or those of `caches`."""
    return _keys(_recorded(folder, host, caches=caches, **variables))


def _recorded(folder: Path, host: str, *, caches: Path | None = None, **variables: str) -> Trial:
    jobs, program = folder / f"jobs-{host}", folder / "program.py"
    program.write_text(_PROGRAM)
    places = {"COMPILEWATCH_JOBS": str(jobs), "TORCHINDUCTOR_CACHE_DIR": str(caches or folder / f"c-{host}")}
    environment = os.environ | FAST_COMPILE | places | variables
    words = [sys.executable, "-m", "compilewatch.record", "--name", "ranker", "--", str(program)]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (file,) = jobs.iterdir()
    header, _, rest = file.read_text().partition("\n")
    file.write_text(json.dumps(json.loads(header) | {"host": host}) + "\n" + rest)
    (trial,) = read(jobs)
    return trial


def _keys(trial: Trial) -> CacheKeys:
    assert trial.compiler is not None
    assert trial.compiler.cache_keys is not None
    return trial.compiler.cache_keys


def _another_torch(folder: Path) -> dict[str, str]:
    """torch of another commit: links to this one, but for its version and a source file."""
    source = Path(torch.__file__).parent
    built = folder / "other" / "torch"
    shutil.copytree(source, built, copy_function=os.link, ignore=shutil.ignore_patterns("__pycache__"))
    for name, change in (
        ("version.py", lambda text: re.sub(r"git_version = .*", f"git_version = '{'ab' * 20}'", text)),
        ("_inductor/utils.py", lambda text: text + "\n# another commit\n"),
    ):
        changed = change((source / name).read_text())
        (built / name).unlink()
        (built / name).write_text(changed)
    return {"PYTHONPATH": os.pathsep.join([str(built.parent), os.environ.get("PYTHONPATH", "")])}


def _another_triton(folder: Path) -> dict[str, str]:
    told = folder / "installed" / "triton-3.4.9.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.4.9\n")
    return {"PYTHONPATH": os.pathsep.join([str(told.parent), os.environ.get("PYTHONPATH", "")])}


def _another_compiler(folder: Path) -> dict[str, str]:
    """The same compiler that calls itself another release."""
    script = folder / "g++"
    script.write_text(
        '#!/bin/sh\ncase "$1" in --version|-v) echo "g++ (Other) 11.1.0";; *) exec /usr/bin/g++ "$@";; esac\n'
    )
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def _planted(code: str) -> Callable[[Path], dict[str, str]]:
    return lambda _folder: {"PLANTED": code}


_PLANTED: dict[str, Callable[[Path], dict[str, str]]] = {
    "torch build": _another_torch,
    "Triton": _another_triton,
    "CPU capability": lambda _: {"ATEN_CPU_CAPABILITY": "default"},
    "compiler": _another_compiler,
    "TORCHINDUCTOR_FREEZING": lambda _: {"TORCHINDUCTOR_FREEZING": "1"},
    "option epilogue_fusion": _planted("options = {'epilogue_fusion': False}"),
    "threads": _planted("torch.set_num_threads(2)"),
    "matmul precision": _planted("torch.set_float32_matmul_precision('high')"),
    "source": _planted("def forward(x): return x.cos() + 1"),
    "inputs": _planted("x = torch.ones(16)"),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_component_is_named_in_ten_of_ten_environments(tmp_path: Path) -> None:
    first = _asked(tmp_path, "first")
    assert first_difference(_asked(tmp_path, "same"), first) is None

    def found(component: str) -> str | None:
        folder = tmp_path / component.replace(" ", "-")
        folder.mkdir()
        difference = first_difference(_asked(folder, "other", **_PLANTED[component](folder)), first)
        return difference and difference.component.partition(" of ")[0]

    with ThreadPoolExecutor(2) as threads:
        named = dict(zip(_PLANTED, threads.map(found, _PLANTED), strict=True))
    assert named == {component: component for component in _PLANTED}


def test_hosts_that_share_a_folder_hit_and_one_that_differs_is_told_by_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = tmp_path / "shared"
    first = _recorded(tmp_path, "host-a", caches=shared)
    second = _recorded(tmp_path, "host-b", caches=shared)
    third = _recorded(tmp_path, "host-c", caches=shared, PLANTED="torch.set_num_threads(2)")
    for trial, answer in ((first, "miss"), (second, "hit"), (third, "miss")):
        assert {each.answer for each in _keys(trial).lookups} == {answer}
        graphs = [each for each in _keys(trial).lookups if each.cache == "fx_graph"]
        assert len(graphs) == 1
        assert bool(graphs[0].took_ns) == (answer == "miss")
        assert bool(graphs[0].saved_ns) == (answer == "hit")
        assert graphs[0].tensors == "float32[8]"
        assert (graphs[0].what or "").startswith("program.py:")
    keys = [{each.cache: each.key for each in _keys(trial).lookups} for trial in (first, second, third)]
    assert keys[0] == keys[1] != keys[2]

    database = f"sqlite:///{tmp_path / 'new.db'}"
    for host in ("host-a", "host-b", "host-c"):
        assert exit_code_of(app, ["import", str(tmp_path / f"jobs-{host}"), "--db", database]) == 0
    capsys.readouterr()
    assert exit_code_of(app, ["caches", "ranker", "--db", database]) == 0
    a, b, c = capsys.readouterr().out.splitlines()
    assert re.match(
        r"host-a: hit rate 0 % \(0 hits, 1 miss, 0 bypasses; lost .*s\)\. The keys of host-b, ", a
    )
    assert re.fullmatch(r"host-b: hit rate 100 % \(1 hit, 0 misses, 0 bypasses; saved .*s\)\.", b)
    assert c.endswith(" threads 2, on host-b 1.")
    monkeypatch.setenv(DATABASE, database)
    page = str(list(sections(content.page(Link(page=Page.COLD_START)).parts)))
    assert "threads 2, on host-b 1." in page
    assert "0 of 1 lookup hit" in str(list(sections([*trial_parts(first)])))
    assert exit_code_of(app, ["caches", "nobody", "--db", database]) == 2


def test_a_graph_that_no_cache_holds_says_why(tmp_path: Path) -> None:
    planted = "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None"
    lookups = _asked(tmp_path, "host", PLANTED=planted).lookups
    assert {each.answer for each in lookups} == {"bypass"}
    assert all(each.reason and each.key is None for each in lookups)


def test_gpus_are_compared_by_name_and_by_what_the_key_says() -> None:
    """Of records: no such host is needed to compare what hosts wrote."""

    def keys(device: str, gpu: str, **more: str) -> CacheKeys:
        lookup = CacheLookup(cache="fx_graph", answer="miss", key="f")
        settings = {"system_info[device]": f"{gpu} {{'name': '{device}'}}"} | more
        return CacheKeys(surroundings={"device": device}, settings=settings, lookups=[lookup])

    one = keys("NVIDIA H100", "aa")
    difference = first_difference(keys("NVIDIA H200", "bb"), one)
    assert difference is not None
    assert (difference.component, difference.one, difference.other) == (
        "device",
        "NVIDIA H200",
        "NVIDIA H100",
    )
    difference = first_difference(
        keys("NVIDIA H100", "aa", **{"inductor_config[max_autotune]": "cc True"}), one
    )
    assert difference is not None
    assert (difference.component, difference.one, difference.other) == (
        "option max_autotune",
        "True",
        "not set",
    )
    assert first_difference(one, keys("NVIDIA H100", "aa")) is None


def test_a_kernel_of_triton_is_a_lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for Triton's listener (triton/knobs.py, `CompilationListener`), not on a GPU."""
    heard = []
    compilation = types.SimpleNamespace(listener=lambda **call: heard.append(call["cache_hit"]))
    stand_in = types.SimpleNamespace(knobs=types.SimpleNamespace(compilation=compilation))
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    recorder.start("kernels", directory=tmp_path)
    try:
        recorder.ready()
        for hit, precision in ((False, "tf32"), (True, "ieee")):
            compilation.listener(
                src=types.SimpleNamespace(fn=types.SimpleNamespace(cache_key="feedface" * 4)),
                metadata={"hash": "abc", "name": "add", "num_warps": 4, "input_precision": precision},
                metadata_group={},
                times=types.SimpleNamespace(total=1_500),
                cache_hit=hit,
            )
    finally:
        recorder.stop()
    assert heard == [False, True]
    (trial,) = read(tmp_path, torch="2.13.0")
    miss, hit = _keys(trial).lookups
    assert (miss.cache, miss.answer, miss.what, miss.took_ns) == ("triton", "miss", "add", 1_500_000)
    assert (hit.answer, hit.took_ns, hit.source) == ("hit", None, "feedfacefeed")
    assert hit.settings == {"Triton's input_precision": "ieee"}


def test_the_recorder_and_the_folder_of_precompile_mean_the_same_surroundings() -> None:
    theirs, ours = load_caches.surroundings("cpu"), recorder._surroundings()
    assert ours.pop("torch").partition(" ")[0] == theirs.pop("torch")
    assert ours == theirs
