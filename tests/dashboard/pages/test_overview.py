"""Today: its sentence counts models, its rows are the changes that wait, and what failed says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import content as break_even
from compilewatch.dashboard.pages.modes import content as modes
from compilewatch.dashboard.pages.overview import content, headline, strip
from compilewatch.dashboard.pages.workload import content as workload
from compilewatch.dashboard.parts.parts import (
    LEFT_OUT,
    Chart,
    Lines,
    PageContent,
    Pairs,
    Part,
    Table,
    flat,
    named,
)
from compilewatch.dashboard.read.data import read_choices, read_regressions
from compilewatch.dashboard.read.database import VARIABLE, InForce
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.policy import Target
from compilewatch.db.judge.results import Tally
from compilewatch.db.queries.facets import builds, machines
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.trial import Failure, FailureKind, Trial
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, SECOND, START, make_build, make_failure, make_history, make_machine, make_trial
from tests.dashboard.conftest import Store, opened

TIMES = {"eager": 10.0, "default": 11.0, "max-autotune": 8.0}


def page_of(store: Store, trials: list[Trial], **link: Any) -> PageContent:
    """The page of the newest build of the only machine."""
    with open_database(store(trials), read_only=True) as database:
        machine = str(machines(database)["machine_id"].iloc[0])
        newest = builds(database).iloc[-1]["build_id"]
    link = {"machine": machine, "build": newest} | link
    return content.page(Link(page=Page.OVERVIEW, **link))


def part(page: PageContent, key: str) -> Part:
    (found,) = named(flat(page.parts), key)
    return found


def rows(page: PageContent, key: str) -> list[dict[str, Any]]:
    found = part(page, key)
    assert isinstance(found, Table)
    return found.frame.to_dict("records")


def pairs(page: PageContent, key: str) -> dict[str, str | None]:
    found = part(page, key)
    assert isinstance(found, Pairs)
    return dict(found.pairs)


def dots(page: PageContent) -> pd.DataFrame:
    found = part(page, strip.KEY)
    assert isinstance(found, Chart)
    return found.chart.frames["main"]


def has(page: PageContent, key: str) -> bool:
    return bool(named(flat(page.parts), key))


# The sentence.


@pytest.mark.parametrize(
    ("models", "cases", "more", "tone", "text"),
    [
        (Tally(slower=2, unchanged=6), {}, {}, "bad", "2 models slower since b"),
        (
            Tally(faster=1, unchanged=4, undecided=3),
            {},
            {},
            "good",
            "1 of 8 models faster, none slower since b",
        ),
        (Tally(unchanged=4, undecided=3), {}, {}, "good", "None of 7 models slower since b"),
        (Tally(unchanged=1, undecided=3), {}, {}, "warning", "3 of 4 models undecided since b"),
        (Tally(faster=1, undecided=3), {}, {}, "warning", "3 of 4 models undecided, 1 faster since b"),
        (Tally(unchanged=1, set_aside=3), {}, {}, "warning", "3 of 4 models set aside, machine since b"),
        (Tally(unchanged=3), {}, {"failing": 1}, "bad", "1 case failing, none of 3 models slower since b"),
        (Tally(unchanged=4), {}, {"changes": 2}, "bad", "2 open changes, none of 4 models slower since b"),
        (
            Tally(unchanged=4),
            {"slower_by": {"speedup": 2}},
            {"changes": 1},
            "bad",
            "None of 4 models slower, speedup 2 worse since b",
        ),
        (Tally(), {}, {"failing": 2}, "bad", "2 cases failing"),
        (Tally(), {}, {"changes": 1}, "bad", "1 open change"),
        (Tally(), {}, {}, "", "No build to compare a with"),
    ],
)
def test_the_colour_is_that_of_the_sentence(
    models: Tally, cases: dict[str, Any], more: dict[str, int], tone: str, text: str
) -> None:
    given = {"failing": 0, "changes": 0, "build": "a", "since": "b"} | more
    said = headline.verdict(models, Tally.model_validate(cases), (), **given)
    assert said.tone == tone
    assert said.text == text
    assert len(said.text.split()) <= 12


def slowed(**more: Any) -> list[Trial]:
    """Of four models two got slower with 2.13.0, one of them with one strategy alone."""
    slow = {("bert-base", "default"): 1.3, ("bert-base", "max-autotune"): 1.5, ("cnn", "default"): 1.2}

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        return 10 * MS * (slow.get((workload, strategy), 1.0) if run else 1.0)

    return make_history(
        **{
            "workloads": ("bert-base", "cnn", "elementwise", "resnet-50"),
            "strategies": tuple(TIMES),
            "builds": ("2.12.0", "2.13.0"),
            "latency_ns": latency_ns,
            "trials_per_case": 12,
            "start": START - timedelta(days=2),
        }
        | more
    )


def test_a_model_is_slower_where_any_of_its_strategies_is(store: Store) -> None:
    page = page_of(store, slowed())
    assert page.headline.startswith("2 models slower since torch 2.12.0, worst +49.4 % latency")
    counted = part(page, "tally")
    assert isinstance(counted, Lines)
    assert counted.lines[0].startswith("4 models: 2 slower, 0 faster, ")
    assert counted.lines[1].startswith("Latency 3 slower, 0 faster, ")
    of_model = dots(page).set_index("workload")
    assert of_model["group"].to_dict().items() >= {"bert-base": "slower", "cnn": "slower"}.items()
    # The case that moved most tells of a model that moved, the middle one of another.
    assert of_model.loc["bert-base", "strategy"] == "max-autotune"
    assert of_model.loc["bert-base", "change"] == pytest.approx(0.5, abs=0.05)
    assert abs(of_model.loc["elementwise", "change"]) < 0.02


def test_dots_that_would_cover_each_other_stand_above_each_other(store: Store) -> None:
    trials = make_history(
        workloads=tuple(f"m{number}" for number in range(6)), builds=("2.12.0", "2.13.0"), trials_per_case=3
    )
    drawn = dots(page_of(store, trials))
    for width in ("wide", "narrow"):
        places = drawn[[f"at_{width}", f"stack_{width}"]]
        assert not places.round(9).duplicated().any(), width
        assert (drawn[f"at_{width}"] - drawn["change"]).abs().max() < 0.01


def test_a_change_beside_a_mean_says_since_when(store: Store) -> None:
    trials = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), trials_per_case=3)
    pays = part(page_of(store, trials), "overview-pays")
    assert isinstance(pays, Pairs)
    assert pays.note == "Geometric means, with their change since the base."


def test_one_model_is_named(store: Store) -> None:
    page = page_of(store, slowed(workloads=("cnn", "elementwise")))
    assert page.headline.startswith("1 model slower since torch 2.12.0: cnn, +19.7 % latency")


def test_nothing_to_compare_shows_what_there_is(store: Store) -> None:
    """One build alone: speedups in the place of changes, whose chart has the same address."""
    page = page_of(store, history(builds=("2.13.0",)))
    assert page.headline == "No build to compare torch 2.13.0 with"
    assert "speedup_text" in dots(page)
    assert not has(page, "overview-build")
    opened(Link(page=Page.OVERVIEW))


def test_nothing_is_red_where_nothing_can_be_compared(store: Store) -> None:
    """Two builds of which no case is comparable, and one of them has other means."""
    slower = make_trial(build="2.13.0", latency_ns=11 * MS, run_id="new", workload="bert-base")
    alone = make_trial(
        build="2.12.0", run_id="old", workload="resnet-50", started_at=START - timedelta(days=1)
    )
    page = page_of(store, [slower, alone])
    assert page.headline == "No build to compare torch 2.13.0 with"
    assert not has(page, "overview-first")
    opened(Link(page=Page.OVERVIEW))


# What to look at first.


def test_one_change_that_hits_several_models_is_one_row(store: Store) -> None:
    """Of latency; the speedup that fell with it is the same event. Nobody recorded it yet."""
    (row,) = rows(page_of(store, slowed()), "overview-first")
    assert row["model"] == "bert-base and 1 more"
    assert row["what"] == "2 strategies, 3 cases"
    assert row["moved"].startswith("+49.4 % ± ")
    assert row["since"] == "torch 2.13.0, not recorded"
    assert (row["owner"], row["why"], row["change_id"]) == ("nobody", "compiler", None)
    assert row["weeks"] == [], "two points on a scale of their own are a cliff, whatever they are"


def record(url: str, base: str, head: str) -> None:
    with open_database(url) as database:
        sides = (resolve_side(f"torch={each}", database) for each in (base, head))
        record_comparison(database, compare(database, *sides), at=START)


def say(url: str, state: TriageState) -> None:
    with open_database(url) as database:
        for each in standing_regressions(database):
            event = TriageEvent(state=state, author="ann", at=START)
            triage(database, each.regression.regression_id, event)


def test_what_is_recorded_has_its_owner_and_what_is_accepted_no_row(store: Store) -> None:
    url = store(slowed())
    record(url, "2.12.0", "2.13.0")
    say(url, TriageState.ACKNOWLEDGED)
    page = page_of(store, [])
    (row,) = rows(page, "overview-first")
    assert (row["owner"], row["since"]) == ("ann", "torch 2.13.0")
    assert row["change_id"]
    assert "1 open change." in page_text(page)
    say(url, TriageState.EXPECTED)
    accepted = page_of(store, [])
    assert not has(accepted, "overview-first"), "it is known, and nobody waits for it"
    assert "2 models slower" in accepted.headline, "it is slower all the same"


def page_text(page: PageContent) -> str:
    return " ".join(line for each in flat(page.parts) if isinstance(each, Lines) for line in each.lines)


def test_a_row_is_of_the_metric_that_moved(store: Store) -> None:
    """A change of the compile cost is no change of latency: one row each, what costs a step first."""
    costly = [
        make_trial(
            workload="mlp",
            strategy="default",
            build=build,
            run_id=f"costly-{build}",
            latency_ns=10 * MS,
            compile_ns=(3 + 6 * place) * SECOND,
            seed=number,
            started_at=START - timedelta(days=2 - place, minutes=-number),
        )
        for place, build in enumerate(("2.12.0", "2.13.0"))
        for number in range(12)
    ]
    found = rows(page_of(store, [*slowed(), *costly]), "overview-first")
    assert [row["what"] for row in found] == ["2 strategies, 3 cases", "compile cost, default"]


def test_at_most_eight_rows_and_how_many_more(store: Store) -> None:
    """Every build slows one model down, so that each is a change of its own."""
    names = tuple(f"model-{number:02d}" for number in range(10))
    torches = tuple(f"2.{number}.0" for number in range(11))
    url = store(
        make_history(
            workloads=names,
            strategies=("default",),
            builds=torches,
            latency_ns=lambda name, _, run: 10 * MS * (1.4 if run > names.index(name) else 1.0),
            trials_per_case=4,
            start=START - timedelta(days=20),
        )
    )
    for base, head in pairwise(torches):
        record(url, base, head)
    page = page_of(store, [])
    table = part(page, "overview-first")
    assert isinstance(table, Table)
    assert len(table.frame) == 8
    assert "2 more in the inbox." in table.note
    assert len(table.frame["weeks"].iloc[0]) == len(torches), "of latency, run by run"


# What failed.


def of_memory(message: str) -> Failure:
    return make_failure(FailureKind.OUT_OF_MEMORY).model_copy(update={"message": message})


def test_what_failed_says_why_and_since_when(store: Store) -> None:
    oom = (
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
        "79.11 GiB of which 7.50 GiB is free. Process 1 has 71.61 GiB memory in use."
    )
    trials = []
    for day, failing in enumerate(((), ("ranker",), ("ranker", "llm"))):
        for name in ("ranker", "llm", "mlp"):
            failure = (
                None
                if name not in failing
                else of_memory(oom)
                if name == "llm"
                else FailureKind.WORKLOAD_ERROR
            )
            trials += [
                make_trial(
                    workload=name,
                    run_id=f"run-{day}",
                    failure=failure,
                    started_at=START + timedelta(days=day, minutes=minute),
                )
                for minute in range(2)
            ]
    page = page_of(store, trials)
    new, old = rows(page, "overview-failed")
    assert (new["model"], new["since"], new["trials"]) == ("llm", "new", "2 of 2")
    assert new["why"] == "out of memory: asked for 20.00 GiB, 7.50 GiB of 79.11 GiB free"
    assert (old["model"], old["since"]) == ("ranker", f"since {START + timedelta(days=1):%Y-%m-%d}")
    assert old["why"] == make_failure(FailureKind.WORKLOAD_ERROR).message


def test_what_a_cpu_lacked_is_no_row_of_digits(store: Store) -> None:
    lacked = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 131072000000 bytes."
    (row,) = rows(page_of(store, [make_trial(failure=of_memory(lacked))]), "overview-failed")
    assert row["why"] == "out of memory: asked for 122 GiB"


def test_a_page_of_failures_alone_opens(store: Store) -> None:
    page = page_of(store, [make_trial(failure="compile_error"), make_trial(failure="compile_error")])
    (row,) = rows(page, "overview-failed")
    assert row["since"] == "its first run"
    assert page.headline == "1 case failing"
    opened(Link(page=Page.OVERVIEW))


def test_a_first_mistake_is_no_headline_once_another_run_passed(store: Store) -> None:
    mistake = make_trial(workload="model:Ranker", run_id="r0", failure="compile_error", started_at=START)
    mended = make_history(
        workloads=("ranker",),
        strategies=("default",),
        builds=("2.13.0",),
        start=START + timedelta(hours=1),
    )
    alone = page_of(store, [mistake])
    assert "1 case failing" in alone.headline
    page = page_of(store, [mistake, *mended])
    assert "failing" not in page.headline
    assert not has(page, "overview-failed")
    titles = [each.title for each in flat(page.parts) if isinstance(each, Lines)]
    assert f"{LEFT_OUT} (1)" in titles
    assert "in an earlier run" in page_text(page)
    link = Link(machine=page.link.machine, build=page.link.build)
    assert break_even.page(replace(link, page=Page.BREAK_EVEN)).link.focus == "ranker"
    failed = workload.page(replace(link, page=Page.WORKLOAD, focus="model:Ranker"))
    assert "only eager" not in failed.headline
    assert "of 2 workloads" in modes.page(replace(link, page=Page.MODES)).headline


# Beside it.


def history(**more: Any) -> list[Trial]:
    def latency_ns(workload: str, strategy: str, run: int) -> float:
        slow = 1.3 if workload == "mlp" and strategy != "eager" else 1.0
        return TIMES[strategy] * slow * MS * (0.5 if workload == "mlp" and run else 1.0)

    return make_history(
        **{
            "workloads": ("bert-base", "mlp"),
            "strategies": tuple(TIMES),
            "builds": ("2.12.0", "2.13.0"),
            "latency_ns": latency_ns,
            "trials_per_case": 5,
            "start": START - timedelta(days=2),
        }
        | more
    )


def test_eager_is_a_strategy(store: Store) -> None:
    """Compiled code that is slower than eager is no fastest strategy, and lowers no mean."""
    found = pairs(page_of(store, history()), "overview-pays")
    # mlp trains, so each task has one model: 10 / 8 with max-autotune, and 1 with eager.
    assert str(found["inference, 1 model"]).startswith("1.25x, ")
    assert found["training, 1 model"] == "1.00x, no change"
    assert found["slower than eager"] == "1 of 2: mlp"


def test_targets_say_how_many_are_met_and_which_are_missed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = (
        Target(strategy="max-autotune", speedup=1.0),
        Target(workload="mlp", strategy="default", speedup=1.5, peak_bytes=1),
        Target(workload="mlp", strategy="default", gpu_utilization_percent=70),
        Target(workload="nobody-*", speedup=2.0),
    )
    monkeypatch.setenv(VARIABLE, InForce(target=limits).model_dump_json())
    found = pairs(page_of(store, history()), "overview-targets")
    assert found.pop("met") == "2 of 5"
    # Those of one case stand in one row, in the order of the limits.
    assert found == {
        "mlp / default": "peak memory is 1.15 GiB, the target is at most 1 B; "
        "speedup is 0.695x, the target is at least 1.50x",
        "mlp / max-autotune": "speedup is 0.960x, the target is at least 1.00x",
    }
    monkeypatch.setenv(VARIABLE, InForce(target=limits[-1:]).model_dump_json())
    assert not list(named(flat(page_of(store, history(seed=3)).parts), "overview-targets"))


def test_what_changed_lists_what_did_not_too(store: Store) -> None:
    older = make_build("2.12.0", driver="570.86.15")
    found = pairs(page_of(store, history(builds=(older, "2.13.0"))), "overview-build")
    assert found["torch"] == "2.12.0 → 2.13.0"
    assert found["driver"].startswith("570.86.15 → ")  # type: ignore[union-attr]
    assert "torch git" not in found, "another release is another commit anyway"
    assert found["cuda, triton"] == "same"


def test_other_machines_say_what_waits_and_how_old_they_are(store: Store) -> None:
    slow, calm = make_machine("slow-box", device_name="NVIDIA L4"), make_machine("calm-box", threads=3)
    url = store(slowed(machines=(slow,)))
    record(url, "2.12.0", "2.13.0")
    store(history(machines=(calm,), start=START - timedelta(days=30), seed=3))
    failing = make_machine("failing-box", threads=5)
    store(history(machines=(failing,), seed=4, failures=[("mlp", "default", 1)]))
    store(history(seed=5))
    others = ("slow-box", "calm-box", "failing-box")
    here = next(each for each, name in read_choices().machine_names.items() if name not in others)
    build = read_choices().builds
    page = content.page(
        Link(page=Page.OVERVIEW, machine=here, build=next(reversed(list(build)))), START.astimezone(UTC)
    )
    found = {row["machine"]: (row["verdict"], row["age"]) for row in rows(page, "overview-machines")}
    assert found["slow-box"][0] == "2 slower"
    assert found["calm-box"] == ("nothing open", "stale, 28 days")
    assert found["failing-box"][0] == "nothing open, 5 trials failed"
    assert len(read_regressions()) > 0


def test_components_over_time_mark_what_moved_at_each_step(store: Store) -> None:
    """In order of first results, not of versions. What no build has did not move."""
    stack = [
        make_build("2.13.0", driver="570.1", triton="3.6.0", cudnn=None),
        make_build("2.12.0", driver="570.1", triton="3.6.0", cudnn=None),
        make_build("2.12.0", driver="580.2", triton="3.6.0", cudnn=None, packages={"transformers": "6.0"}),
    ]
    trials = [
        make_trial(build=build, run_id=f"run-{day}", started_at=START - timedelta(days=9 - day))
        for day, build in enumerate(stack)
    ]
    page = page_of(store, trials)
    chart = part(page, "overview-components")
    assert isinstance(chart, Chart)
    cells = chart.chart.frames["main"]
    moved = cells[cells["state"] == "moved"]
    of_build = {
        column.removeprefix("torch ").split(" · ")[0]: dict(zip(mine["part"], mine["says"], strict=True))
        for column, mine in moved.groupby("build")
    }
    assert of_build["2.12.0 (driver 570.1)"]["torch"] == "2.13.0 → 2.12.0"
    assert of_build["2.12.0 (driver 580.2)"] == {
        "driver": "570.1 → 580.2",
        "transformers": "5.23.0 → 6.0",
    }
    assert not {"triton", "cudnn"} & set(cells["part"]), "they never moved"
    assert chart.chart.finding == "Components over time: something moved at 2 of 2 steps"
