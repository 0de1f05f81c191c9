"""What a measured process gets of the runner's environment, and what never reaches it."""

from __future__ import annotations

from compilewatch.runner.plan.interpreter import (
    passed_on,
    pinned_settings,
    probing_environment,
    worker_environment,
)

HOST = {
    "PATH": "/usr/bin",
    "HOME": "/home/someone",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "PYTHONPATH": "/elsewhere",
    "LD_LIBRARY_PATH": "/usr/lib/driver",
    "CUDA_MPS_PIPE_DIRECTORY": "/run/mps",
    "VIRTUAL_ENV": "/elsewhere",
    "TORCHINDUCTOR_CACHE_DIR": "/home/someone/cache",
    "TORCHINDUCTOR_FREEZING": "1",
    "HF_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "OMP_NUM_THREADS": "64",
    "CUDA_VISIBLE_DEVICES": "1",
}


def test_only_what_is_allowed_passes(tmp_path):
    environment = worker_environment(tmp_path, threads=2, extra={}, inherited=HOST)
    assert environment["PATH"] == "/usr/bin"
    assert environment["LC_ALL"] == "C"
    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "TORCHINDUCTOR_FREEZING"):
        assert name not in environment
    assert "secret" not in environment.values()


def test_by_what_a_driver_is_found_passes_and_is_recorded(tmp_path):
    environment = worker_environment(tmp_path, threads=2, extra={}, inherited=HOST)
    found = {"LD_LIBRARY_PATH": "/usr/lib/driver", "CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}
    assert environment.items() >= found.items()
    assert passed_on(HOST) == found


def test_an_interpreter_is_asked_in_the_environment_that_a_trial_has(tmp_path, monkeypatch):
    for name, value in HOST.items():
        monkeypatch.setenv(name, value)
    asked = probing_environment()
    assert asked["LD_LIBRARY_PATH"] == "/usr/lib/driver"
    assert worker_environment(tmp_path, threads=2, extra={}).items() >= asked.items()


def test_every_cache_is_new_and_empty(tmp_path):
    environment = worker_environment(tmp_path, threads=2, extra={}, inherited=HOST)
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "TMPDIR"):
        directory = tmp_path / environment[name].rpartition("/")[2]
        assert str(directory) == environment[name]
        assert list(directory.iterdir()) == []


def test_threads_are_pinned_whatever_the_host_says(tmp_path):
    environment = worker_environment(tmp_path, threads=2, extra={}, inherited=HOST)
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment.items() >= pinned_settings(2).items()


def test_the_allocator_is_that_of_a_plain_process(tmp_path):
    """A threshold that is set keeps glibc from adapting it, and what a step frees from going back."""
    inherited = HOST | {"MALLOC_MMAP_THRESHOLD_": "1073741824"}
    environment = worker_environment(tmp_path, threads=2, extra={}, inherited=inherited)
    assert not [name for name in environment if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]


def test_what_a_suite_asks_for_comes_last(tmp_path):
    extra = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "HF_HUB_OFFLINE": "0"}
    environment = worker_environment(tmp_path, threads=2, extra=extra, inherited=HOST)
    assert environment.items() >= extra.items()


def test_a_user_without_a_name_gets_one(tmp_path):
    environment = worker_environment(tmp_path, threads=1, extra={}, inherited={})
    assert environment["USER"]
    assert environment["HOME"]
