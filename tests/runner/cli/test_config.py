"""`compilewatch config`: what is wrong is named, where a value comes from is said, secrets are not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compilewatch.dashboard.read.database import VARIABLE, InForce, in_force
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.records.requests import Limits
from compilewatch.runner.cli.stored.serve import dashboard_environment
from compilewatch.runner.config.sources import load_settings
from tests.runner.terminal import compilewatch, in_this_process

_FILE = """\
database_url = "postgresql+psycopg://me:hunter2@db.example.org/history"

[run]
trials = 7

[[workload]]
name = "big"
target = "encoder"
batch_size = [1, 64]

[[suite]]
name = "nightly"
workloads = ["big-b1", "cnn"]

[[channel]]
name = "team"
webhook = "https://hooks.example.org/token-of-ours"
"""


def _write(directory: Path, text: str) -> None:
    (directory / "compilewatch.toml").write_text(text, encoding="utf-8")


def test_show_names_the_origin_of_every_value_and_no_secret(tmp_path: Path) -> None:
    _write(tmp_path, _FILE)
    result = in_this_process("config", "show", "--json", cwd=tmp_path, COMPILEWATCH_RUN__SAMPLES="80")
    assert result.returncode == 0, result.stderr
    assert "hunter2" not in result.stdout
    assert "token-of-ours" not in result.stdout
    rows = {row["key"]: row for row in json.loads(result.stdout)["rows"]}
    assert rows["run.trials"] == {"key": "run.trials", "value": 7, "from": "compilewatch.toml"}
    assert rows["run.samples"] == {
        "key": "run.samples",
        "value": 80,
        "from": "COMPILEWATCH_RUN__SAMPLES",
    }
    assert rows["run.timeout_s"]["from"] == "default"
    assert rows["database_url"]["value"] == "postgresql+psycopg://me:***@db.example.org/history"
    assert rows["workload"]["value"][0]["batch_size"] == [1, 64]


def test_check_says_what_a_good_file_holds(tmp_path: Path) -> None:
    _write(tmp_path, _FILE)
    result = in_this_process("config", "check", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "compilewatch.toml is valid: 1 workload, 1 suite, 1 channel.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[suite]]\nname = "nightly"\nworkloads = ["encodr"]\n', "There is no workload 'encodr'"),
        ('[[workload]]\nname = "mine"\ntarget = "my_models:build"\n', "my_models"),
        (
            '[[schedule]]\nname = "n"\ncron = "@daily"\nsuite = "smokee"\n',
            "There is no suite 'smokee' in [[schedule]] n.\n  Did you mean smoke",
        ),
    ],
)
def test_check_names_what_is_not_there(tmp_path: Path, text: str, said: str) -> None:
    _write(tmp_path, text)
    result = in_this_process("config", "check", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


def test_check_notes_a_build_of_another_host(tmp_path: Path) -> None:
    _write(tmp_path, '[[build]]\nname = "old"\npython = "nowhere/python"\n')
    result = in_this_process("config", "check", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "compilewatch.toml is valid: 1 build.\n")
    assert "[[build]] old names" in result.stderr


_SIGN_IN = """\
[auth]
base_url = "https://compilewatch.example"
issuer = "https://login.example"
client_id = "compilewatch"
[auth.roles]
everyone = "viewer"
"""
_SECRET_VARIABLE = "COMPILEWATCH_AUTH__CLIENT_SECRET"


@pytest.mark.parametrize(
    "words",
    [
        ("list", "runs"),
        ("token", "list"),
        ("report", "list"),
        ("schedule", "list"),
        ("gate",),
        ("db", "check"),
        ("config", "show"),
    ],
    ids=" ".join,
)
def test_commands_answer_without_the_secret_of_the_dashboard_as_with_it(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert in_this_process("db", "upgrade", cwd=tmp_path).returncode == 0
    _write(tmp_path, _SIGN_IN)
    without = in_this_process(*words, cwd=tmp_path)
    given = in_this_process(*words, cwd=tmp_path, **{_SECRET_VARIABLE: "s"})
    assert "client_secret" not in without.stderr
    assert without.returncode == given.returncode
    assert without.stderr == given.stderr


@pytest.mark.parametrize("secret", [{}, {_SECRET_VARIABLE: ""}], ids=["absent", "empty"])
def test_a_check_names_the_variable_of_the_secret_that_serving_lacks(
    tmp_path: Path, secret: dict[str, str]
) -> None:
    _write(tmp_path, _SIGN_IN)
    checked = in_this_process("config", "check", cwd=tmp_path, **secret)
    assert checked.returncode == 0
    assert f"`compilewatch dashboard` needs {_SECRET_VARIABLE}." in checked.stderr


def test_without_the_secret_nothing_is_served(tmp_path: Path) -> None:
    _write(tmp_path, _SIGN_IN)
    served = compilewatch("dashboard", "--port", "1", cwd=tmp_path, **{_SECRET_VARIABLE: ""})
    assert served.returncode == 2
    assert served.stderr.splitlines() == [
        "compilewatch: Signing in at https://login.example needs a client secret.",
        f"  Set {_SECRET_VARIABLE}, or client_secret in [auth].",
    ]


def test_a_check_with_the_secret_notes_nothing(tmp_path: Path) -> None:
    _write(tmp_path, _SIGN_IN)
    assert in_this_process("config", "check", cwd=tmp_path, **{_SECRET_VARIABLE: "s"}).stderr == ""


def test_only_the_process_that_serves_is_told_the_secret(tmp_path: Path) -> None:
    _write(tmp_path, _SIGN_IN.replace("[auth.roles]", 'client_secret = "hidden-word"\n[auth.roles]'))
    settings = load_settings(tmp_path / "compilewatch.toml")
    assert "hidden-word" in settings.auth.revealed()
    assert "hidden-word" not in str(dashboard_environment(settings))


def test_the_process_that_serves_is_told_what_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, _IN_FORCE)
    environment = dashboard_environment(load_settings(tmp_path / "compilewatch.toml"))
    assert "hidden-word" not in str(environment)
    monkeypatch.setenv(VARIABLE, environment[VARIABLE])
    assert in_force() == InForce(
        policy=Policy(minimum_trials=4),
        target=(Target(workload="bert-*", speedup=1.25),),
        limits=Limits(trials=7),
    )


_IN_FORCE = """\
[policy]
minimum_trials = 4

[limits]
trials = 7

[[target]]
workload = "bert-*"
speedup = 1.25

[[channel]]
name = "team"
webhook = "https://chat.example/hidden-word"

[[channel]]
name = "mail"
apprise = "mailto://me:hidden-word@mail.example"
"""
_OWN = '[[workload]]\nname = "w"\ntarget = "mine:build"\n'
_SUITE = '[[suite]]\nname = "mine"\n'
_MODEL = """\
import torch


def build(batch_size=4, *, features):
    def forward(x):
        return x

    return torch.nn.Linear(features, 4), (torch.randn(batch_size, features),)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_SUITE + 'workloads = ["elementwiss"]', r"(?s)elementwiss.* mine.*elementwise"),
        (_SUITE + 'workloads = ["cnn"]\nstrategies = ["defualt"]', r"(?s)mine.*default"),
        (_OWN + 'shape = {feature = 4}', r"(?s)feature in .* w.*features"),
        (_OWN, "needs features"),
        (_OWN + 'shape = {features = 4}\ntask = "training"', "no loss"),
        (_OWN + 'kwargs = {features = inf}', r"kwargs\.features is inf"),
        (_OWN + 'kwargs = {features = "a\\u0000b"}', "NUL"),
        ('data_dir = "a\\u0000b"', "data_dir holds a NUL"),
        ("x = " + "[" * 100_000, "nests"),
        ("policy = " + "[" * 900 + "]" * 900, "nests"),
    ],
)  # fmt: skip
def test_check_finds_what_a_run_would(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(_MODEL, encoding="utf-8")
    _write(tmp_path, text)
    result = in_this_process("config", "check", cwd=tmp_path)
    assert result.returncode == 2, result.stdout
    assert re.search(said, result.stderr), result.stderr


def test_sizes_that_a_builder_takes_are_right(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(_MODEL, encoding="utf-8")
    _write(
        tmp_path,
        _OWN + "batch_size = [1, 2]\nshape = {features = [4, 8]}\n",
    )
    assert in_this_process("config", "check", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("COMPILEWATCH_RUN_TRIALS", "COMPILEWATCH_RUN__TRIALS"),
        ("COMPILEWATCH_DATABSE_URL", "COMPILEWATCH_DATABASE_URL"),
        ("COMPILEWATCH_LIMITSX", "COMPILEWATCH_LIMITS"),
        ("COMPILEWATCH_JOBSX", "COMPILEWATCH_JOBS"),
    ],
)
def test_check_finds_a_variable_that_sets_nothing(tmp_path: Path, variable: str, meant: str) -> None:
    result = in_this_process("config", "check", cwd=tmp_path, **{variable: "3"})
    assert result.returncode == 2
    assert variable in result.stderr
    assert f"Did you mean {meant}?" in result.stderr
