"""Short names of strategies: parsed, canonical, and refused with the nearest known one."""

from __future__ import annotations

from itertools import permutations

import pytest

from compilewatch.db.errors import NotFoundError
from compilewatch.db.records.strategies import (
    BUILTIN,
    PASSES,
    leaves_out,
    not_applicable_reason,
    parse_strategy,
    settings_of_name,
    sort_key,
    whole_of,
)
from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind


@pytest.mark.parametrize("name", list(BUILTIN))
def test_a_built_in_name_is_itself(name: str) -> None:
    assert parse_strategy(name) is BUILTIN[name]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("default+dynamic", {"dynamic": True}),
        ("default+static", {"dynamic": False}),
        ("default+fullgraph", {"fullgraph": True}),
        ("default+regional", {"scope": "regional"}),
        ("default+nested", {"scope": "nested"}),
        ("max-autotune+submodule:encoder.layer.0", {"scope": "submodule:encoder.layer.0"}),
        ("default+submodule:0.1", {"scope": "submodule:0.1"}),
        ("default+warm", {"cache": CacheState.WARM}),
        ("reduce-overhead+portable", {"cache": CacheState.PORTABLE}),
        ("default+without:pattern_matcher", {"options": {"pattern_matcher": False}}),
        ("max-fusion-8+without:max_fusion_size", {"options": {}}),
        ("max-fusion-8+without:shape_padding", {"options": {"max_fusion_size": 8, "shape_padding": False}}),
    ],
)
def test_a_modifier_changes_one_field(name: str, changes: dict[str, object]) -> None:
    base = BUILTIN[name.split("+", maxsplit=1)[0]]
    assert parse_strategy(name) == base.model_copy(update={"name": name, **changes})


def test_one_strategy_has_one_name_whatever_the_order() -> None:
    modifiers = ("dynamic", "fullgraph", "regional", "without:epilogue_fusion", "warm")
    parsed = {parse_strategy("+".join(["default", *order])).name for order in permutations(modifiers)}
    assert parsed == {"default+dynamic+fullgraph+regional+without:epilogue_fusion+warm"}


def test_what_leaves_something_out_names_the_whole() -> None:
    assert whole_of("default+dynamic+without:epilogue_fusion+warm") == (
        "default+dynamic+warm",
        "epilogue_fusion",
    )
    assert whole_of("default+warm") is None
    assert leaves_out(BUILTIN["max-fusion-8"]) == ["max_fusion_size"]
    assert leaves_out(BUILTIN["default"]) == list(PASSES)
    assert settings_of_name("default+without:epilogue_fusion+half") == "half"


@pytest.mark.parametrize(
    "name", ["default+without:epilog_fusion", "backend:aot_eager+without:epilogue_fusion"]
)
def test_what_is_not_there_cannot_be_left_out(name: str) -> None:
    with pytest.raises(NotFoundError, match=r"has nothing called '.*' to leave out"):
        parse_strategy(name)


def test_a_reason_is_of_the_whole_alone() -> None:
    own = BUILTIN["max-fusion-8"].model_copy(update={"name": "small", "reason": "spills above 8"})
    assert parse_strategy("small+dynamic", {"small": own}).reason == "spills above 8"
    assert parse_strategy("small+without:max_fusion_size", {"small": own}).reason is None


def test_parts_with_settings_of_their_own_take_no_other_scope() -> None:
    own = Strategy(name="mixed", kind=StrategyKind.COMPILE, scope="regions", cache="cold", regions={"0": {}})
    assert parse_strategy("mixed+warm", {"mixed": own}).regions == {"0": {}}
    with pytest.raises(NotFoundError, match="mixed says itself which parts are compiled"):
        parse_strategy("mixed+regional", {"mixed": own})


def test_another_backend_needs_no_configuration() -> None:
    plain, more = parse_strategy("backend:aot_eager"), parse_strategy("backend:aot_eager+fullgraph+dynamic")
    assert (plain.name, plain.kind, plain.backend, plain.mode) == (
        "backend:aot_eager",
        StrategyKind.COMPILE,
        "aot_eager",
        None,
    )
    assert more.name == "backend:aot_eager+dynamic+fullgraph"
    assert (more.backend, more.dynamic, more.fullgraph) == ("aot_eager", True, True)


def test_modifiers_of_a_named_strategy() -> None:
    mine = Strategy(
        name="mine",
        kind=StrategyKind.COMPILE,
        backend="inductor",
        cache=CacheState.COLD,
        options={"freezing": True},
    )
    parsed = parse_strategy("mine+dynamic", {"mine": mine})
    assert (parsed.name, parsed.dynamic, parsed.options) == ("mine+dynamic", True, {"freezing": True})


@pytest.mark.parametrize(
    ("name", "message", "next_step"),
    [
        ("defualt", "There is no strategy 'defualt'.", "Did you mean default?"),
        ("default+dynamc", "unknown modifier 'dynamc'", "Did you mean dynamic?"),
        ("default+submodule:", "unknown modifier 'submodule:'", "submodule:PATH"),
        ("default+", "unknown modifier ''", "Modifiers are"),
        ("", "There is no strategy ''.", "compilewatch list strategies"),
        ("eager+dynamic", "eager is not torch.compile", "Write eager."),
        ("packaged+warm", "packaged is not torch.compile", "Write packaged."),
        ("backend:", "There is no strategy 'backend:'.", "compilewatch list strategies"),
        ("backend:aot_eager+dynamc", "unknown modifier 'dynamc'", "Did you mean dynamic?"),
        ("default+dynamic+static", "two modifiers that exclude each other", "Leave one of them out."),
        ("default+regional+nested", "two modifiers that exclude each other", ""),
        ("default+regional+submodule:a", "two modifiers that exclude each other", ""),
        ("default+dynamic+dynamic", "two modifiers that exclude each other", ""),
    ],
)
def test_what_is_refused(name: str, message: str, next_step: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        parse_strategy(name)
    assert message in caught.value.message
    assert next_step in caught.value.next_step


def test_cuda_graphs_alone_mean_nothing_on_a_cpu() -> None:
    reasons = {name: not_applicable_reason(strategy, "cpu") for name, strategy in BUILTIN.items()}
    assert [name for name, reason in reasons.items() if reason is not None] == ["reduce-overhead"]
    assert not_applicable_reason(parse_strategy("reduce-overhead+dynamic"), "cpu") is not None
    assert all(not_applicable_reason(strategy, "cuda") is None for strategy in BUILTIN.values())


def test_modified_names_sort_behind_their_base() -> None:
    names = ["max-autotune", "mine", "default+warm", "default", "eager", "default+dynamic"]
    assert sorted(names, key=sort_key) == [
        "eager",
        "default",
        "default+dynamic",
        "default+warm",
        "max-autotune",
        "mine",
    ]
