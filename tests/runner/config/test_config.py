"""The configuration: what wins, where it came from, and what each mistake is answered with."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.records.access import SignIn
from compilewatch.db.records.trial import CacheState, StrategyKind
from compilewatch.db.records.vocabulary import Metric
from compilewatch.runner.config.settings import ChannelSettings, Settings
from compilewatch.runner.config.sources import load_settings, origins
from compilewatch.runner.plan.selection import known_strategies, known_suites, known_workloads, select
from compilewatch.runner.worker.step import host

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "compilewatch.example.toml"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith("COMPILEWATCH_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write(content: str) -> None:
    Path("compilewatch.toml").write_text(content)


def test_defaults_without_a_file() -> None:
    settings = load_settings()
    assert settings.config_file is None
    assert settings.database_url == "sqlite:///compilewatch.db"
    assert (settings.run.suite, settings.run.samples, settings.run.trials) == ("smoke", 50, None)
    assert settings.run.matmul_precision == "highest", "as torch has it in a plain script"
    assert settings.threads == host.step_threads()
    assert {origin.source for origin in origins(settings)} == {"default"}


def test_option_wins_over_environment_over_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[run]\ntrials = 2\nsamples = 20\nseed = 1\n")
    monkeypatch.setenv("COMPILEWATCH_RUN__SAMPLES", "30")
    monkeypatch.setenv("COMPILEWATCH_RUN__SEED", "2")
    options = {"run": {"seed": 3}}
    settings = load_settings(options=options)
    assert (settings.run.trials, settings.run.samples, settings.run.seed) == (2, 30, 3)
    sources = {origin.key: origin.source for origin in origins(settings, options=options)}
    assert sources["run.trials"] == "compilewatch.toml"
    assert sources["run.samples"] == "COMPILEWATCH_RUN__SAMPLES"
    assert sources["run.seed"] == "option"
    assert sources["run.timeout_s"] == "default"


def test_list_in_the_environment_is_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEWATCH_RUN__STRATEGIES", "eager, default+dynamic")
    assert load_settings().run.strategies == ("eager", "default+dynamic")


def test_unrelated_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEWATCH_TEST_POSTGRES_URL", "postgresql://127.0.0.1/x")
    assert load_settings().config_file is None


MISTAKES = [
    ("[run]\ntrails = 3\n", "compilewatch.toml: there is no key trails in [run].", "Did you mean trials?"),
    ('databse_url = "x"\n', "compilewatch.toml: there is no key databse_url.", "Did you mean database_url?"),
    (
        '[run]\ntrials = "three"\n',
        "compilewatch.toml: trials in [run] must be a whole number, not 'three'.",
        "compilewatch.example.toml",
    ),
    ("[run]\ntrials = 0\n", "compilewatch.toml: trials in [run] must be at least 1, not 0.", ""),
    ("run = 5\n", "compilewatch.toml: run must be a table, not 5.", ""),
    (
        '[[workload]]\nname = "a"\ntarget = "b:c"\nvariants = ["bf16", "int4"]\n',
        "compilewatch.toml: variants number 2 in [[workload]] a must be 'float32', 'bf16', 'int8' or "
        "'fp8', not 'int4'.",
        "",
    ),
    (
        '[run]\ndevice = "gpu"\n',
        "compilewatch.toml: device in [run] must be auto, cpu, cuda or cuda:N, not 'gpu'.",
        "",
    ),
    (
        '[workload]\nname = "a"\n',
        "compilewatch.toml: workload must be a list of tables, written [[workload]], not {'name': 'a'}.",
        "",
    ),
    (
        '[[workload]]\nname = "a"\ntarget = "m:f"\nbatchsize = 3\n',
        "compilewatch.toml: there is no key batchsize in [[workload]] a.",
        "Did you mean batch_size?",
    ),
    ('[[workload]]\nname = "a"\n', "compilewatch.toml: target is missing in [[workload]] a.", ""),
    (
        '[[workload]]\nname = "a"\ntarget = "m:f"\nshape = { width = [] }\n',
        "compilewatch.toml: width in [[workload]] a must be a whole number of at least 1, "
        "or a list of them, not [].",
        "",
    ),
    (
        '[[strategy]]\nname = "a"\nmode = "default"\noptions = { x = 1 }\n',
        "torch.compile takes mode or options, not both",
        "",
    ),
    (
        '[[suite]]\nname = "a"\nworkloads = ["cnn"]\n' * 2,
        "two [[suite]] entries are named 'a'; names must differ.",
        "",
    ),
    (
        "[policy]\nminimum_trails = 5\n",
        "compilewatch.toml: there is no key minimum_trails in [policy].",
        "Did you mean minimum_trials?",
    ),
    (
        "[policy]\nconfidence = 95\n",
        "compilewatch.toml: confidence in [policy] must be less than 1.0, not 95.",
        "",
    ),
    (
        "[policy.thresholds.latency]\nminimum_efect = 0.1\n",
        "there is no key minimum_efect in [policy.thresholds.latency]",
        "Did you mean minimum_effect?",
    ),
    (
        "[policy.thresholds.latency]\nminimum_effect = 0.1\nunchanged_margin = 0.05\n",
        "compilewatch.toml: unchanged_margin must be at least minimum_effect in [policy.thresholds.latency].",
        "",
    ),
    (
        "[policy.thresholds]\nspeed = { minimum_effect = 0.1, unchanged_margin = 0.1 }\n",
        "compilewatch.toml: speed in [policy.thresholds] must be 'latency', 'speedup'",
        "",
    ),
    (
        '[[policy.overrides]]\nworkload = "a"\n',
        "an override needs minimum_effect or unchanged_margin in [[policy.overrides]] number 1.",
        "",
    ),
    ("[policy.history]\nwindow = 3\n", "window in [policy.history] must be at least 20, not 3.", ""),
    (
        '[[target]]\nworkload = "a"\n',
        "a target needs at least one limit, such as latency_p95_ns in [[target]] number 1.",
        "",
    ),
    ('[[channel]]\nname = "team"\n', "a channel needs webhook or apprise, and not both", ""),
    ("[run]\ntrials = \n", "compilewatch.toml is not valid TOML: Invalid value (at line 2, column 10).", ""),
]


@pytest.mark.parametrize(("content", "message", "next_step"), MISTAKES)
def test_a_mistake_is_one_sentence_that_names_it(content: str, message: str, next_step: str) -> None:
    write(content)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert next_step in caught.value.next_step
    assert caught.value.exit_code == 2


def test_a_mistake_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEWATCH_RUN__TRAILS", "4")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert "COMPILEWATCH_RUN__TRAILS" in caught.value.message
    assert caught.value.next_step == "Did you mean trials?"


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_named_file_must_be_there(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEWATCH_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigError, match=r"There is no configuration file nowhere\.toml"):
        load_settings(Path("nowhere.toml") if how == "option" else None)


def test_the_example_is_valid_and_has_every_key() -> None:
    settings = load_settings(EXAMPLE)
    named = tomllib.loads(EXAMPLE.read_text())
    text = EXAMPLE.read_text()
    shown_as_comments = {"channel": ChannelSettings, "auth": SignIn}
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        entries = value if isinstance(value, tuple) else (value,)
        assert name in named or name in shown_as_comments
        for entry in entries:
            if isinstance(entry, BaseModel):
                _every_key_is_in(text, type(entry), name)
            else:
                assert entry == field.default
    for table, section in shown_as_comments.items():
        _every_key_is_in(text, section, table)
    _holds_the_defaults(settings.run)
    _holds_the_defaults(settings.notify)
    assert settings.policy.model_copy(update={"overrides": ()}) == Policy()


def _every_key_is_in(text: str, model: type[BaseModel], name: str) -> None:
    for key, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            assert f"[{name}.{key}]" in text
            _every_key_is_in(text, field.annotation, f"{name}.{key}")
        else:
            assert f"{key} = " in text or f"{name}.{key}]" in text, f"{name}.{key} is not in the example"


def _holds_the_defaults(section: BaseModel) -> None:
    for key, field in type(section).model_fields.items():
        assert getattr(section, key) == field.default, f"{key} in the example is not its default"


def test_the_examples_strategies_suites_and_builds() -> None:
    settings = load_settings(EXAMPLE)
    strategies = known_strategies(settings)
    freezing = strategies["freezing"]
    assert (freezing.kind, freezing.mode, freezing.options) == (
        StrategyKind.COMPILE,
        None,
        {"freezing": True},
    )
    assert freezing.cache is CacheState.COLD
    assert strategies["no-breaks"].fullgraph is True
    assert known_suites(settings)["nightly"].trials == 5
    assert settings.builds[0].python == ROOT / "../torch-2.12/bin/python"
    assert {"ranker-b1", "ranker-b64", "encoder-long"} <= set(known_workloads(settings))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('[[workload]]\nname = "cnn"\ntarget = "m:f"\n', "workload"),
        ('[[strategy]]\nname = "default"\n', "strategy"),
        ('[[suite]]\nname = "smoke"\nworkloads = ["cnn"]\n', "suite"),
    ],
)
def test_a_built_in_name_cannot_be_redefined(content: str, kind: str) -> None:
    write(content)
    settings = load_settings()
    known = {"workload": known_workloads, "strategy": known_strategies, "suite": known_suites}[kind]
    with pytest.raises(ConfigError, match=f"has the name of a built-in {kind}"):
        known(settings)


SECRET = "s3cr3t-token"


@pytest.mark.parametrize(
    "content",
    [
        f'[[channel]]\nname = "team"\nwebhook = "ftp://example.com/{SECRET}"\n',
        f'[[channel]]\nname = "team"\nwebhook = ["https://example.com/{SECRET}"]\n',
        f'[[channel]]\nname = "team"\napprise = {{ url = "slack://{SECRET}" }}\n',
        f'[[channel]]\nname = "team"\nwebhook = "https://a/{SECRET}"\napprise = "slack://{SECRET}"\n',
        f'channel = "https://example.com/{SECRET}"\n',
        f'notify = "https://example.com/{SECRET}"\n',
        f'[notify]\nbase_url = "https://user:{SECRET}@/"\n',
    ],
)
def test_a_mistake_never_repeats_an_address_that_holds_a_token(content: str) -> None:
    write(content)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert SECRET not in str(caught.value)


def test_settings_print_no_token() -> None:
    write(f'[[channel]]\nname = "team"\nwebhook = "https://example.com/{SECRET}"\n')
    settings = load_settings()
    assert SECRET not in repr(settings)
    assert SECRET not in "".join(str(origin) for origin in origins(settings))
    assert settings.channel[0].webhook.get_secret_value().endswith(SECRET)


def test_thresholds_of_the_file_reach_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        "[policy.thresholds]\nlatency = { minimum_effect = 0.04, unchanged_margin = 0.04 }\n"
        '[[policy.overrides]]\nworkload = "tiny-*"\nmetric = "latency"\nminimum_effect = 0.1\n'
    )
    monkeypatch.setenv("COMPILEWATCH_POLICY__MINIMUM_TRIALS", "5")
    policy = load_settings().policy
    assert policy.minimum_trials == 5
    assert policy.for_case("cnn", "default", Metric.LATENCY).minimum_effect == 0.04
    assert policy.for_case("tiny-cnn", "default", Metric.LATENCY).unchanged_margin == 0.1
    assert policy.thresholds[Metric.SPEEDUP] == Policy().thresholds[Metric.SPEEDUP]


def test_a_target_of_the_file_is_a_target_of_the_judge() -> None:
    write('[[target]]\nworkload = "cnn"\nspeedup = 1.5\nlatency_p95_ns = 2e6\n')
    assert load_settings().target == (Target(workload="cnn", speedup=1.5, latency_p95_ns=2e6),)


def test_a_sweep_of_options_is_a_strategy_of_each_combination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(
        '[[strategy]]\nname = "fusion"\noptions = { dce = true }\n'
        "sweep = { max_fusion_size = [4, 16], epilogue_fusion = [true, false] }\n"
    )
    settings = load_settings()
    resolved = select(settings, workloads=["cnn"], strategies=["fusion+dynamic", "eager"])
    names = [
        f"fusion-max_fusion_size-{size}-epilogue_fusion-{fusion}+dynamic"
        for size in (4, 16)
        for fusion in ("true", "false")
    ]
    assert [each.name for each in resolved.strategies] == [*names, "eager"]
    assert resolved.strategies[1].options == {"dce": True, "max_fusion_size": 4, "epilogue_fusion": False}
    assert resolved.strategies[1].mode is None
    with pytest.raises(NotFoundError):
        select(settings, workloads=["cnn"], strategies=["fusions"])


def test_regions_are_compiled_each_as_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(
        '[[strategy]]\nname = "mixed"\n[strategy.regions.encoder]\ndynamic = true\n'
        '[strategy.regions."decoder.0"]\noptions = { freezing = true }\n'
    )
    mixed = known_strategies(load_settings())["mixed"]
    assert mixed.scope == "regions"
    assert mixed.regions == {"encoder": {"dynamic": True}, "decoder.0": {"options": {"freezing": True}}}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('sweep = { dce = ["x y"] }', "'x y' is no number, true, false or short word"),
        ("sweep = { dce = [] }", "dce in [[strategy]] mine must be a list with at least 1 entry"),
        ("sweep = { dce = [true] }\noptions = { dce = true }", "dce is in options and in sweep"),
        ('regions = { "a.b" = {}, a = {} }', "a.b lies within another"),
        ('scope = "regional"\nregions = { a = {} }', "leave out kind and scope"),
        ('regions = { a = { mode = "default", options = { dce = true } } }', "mode or options, not both"),
        ('regions = { a = { options = { "dynamo.recompile_limit" = 2 } } }', "holds for the whole process"),
        ('regions = { "a b" = {} }', "a b in [[strategy]] mine must be parts of the model"),
    ],
)
def test_a_strategy_that_means_nothing_is_a_sentence(
    entry: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(f'[[strategy]]\nname = "mine"\n{entry}\n')
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert said in caught.value.message
