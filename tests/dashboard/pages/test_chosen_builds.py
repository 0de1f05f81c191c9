"""Which builds a page offers, how it names them, and which two it sets against each other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.data import read_choices_on
from compilewatch.dashboard.render import controls
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.facets import builds
from compilewatch.db.records.trial import Build, Machine, Trial
from tests.builders import START, make_build, make_history, make_machine, make_trial
from tests.dashboard.conftest import Store, machine_ids, opened, selector, texts
from tests.regression_cases import stepping_history

H100, LAPTOP = make_machine("h100"), make_machine("laptop", device="cpu")
COMMON = {"OMP_PLACES": "cores", "HF_HUB_OFFLINE": "1"}
SKIP, HEADERS = "PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"


def build(torch: str, **environment: str) -> Build:
    return make_build(torch, settings={"environment": COMMON | environment, "flush_l2": True})


PLAIN, SKIPPING, NEWEST = build("2.11.0"), build("2.11.0", **{SKIP: "1"}), build("2.13.0", **{SKIP: "1"})
OTHER = build("2.11.0", **{HEADERS: "0"})
OF_LAPTOP = make_build("2.11.0", driver=None, cuda=None, torch_variant="cpu")


def trials(of: Build, day: int, *workloads: str, machine: Machine = H100) -> list[Trial]:
    return [
        make_trial(
            build=of,
            machine=machine,
            workload=workload,
            run_id=f"{machine.name}-{day}",
            trial_id=f"{machine.name}-{day}-{workload}",
            started_at=START + timedelta(days=day),
        )
        for workload in workloads
    ]


@pytest.fixture
def url(store: Store) -> str:
    """As on the H100: 2.13 was measured first, 2.11 last, with other variables and other cases."""
    stored = [
        *trials(NEWEST, 0, "bert-base", "mlp", "canary-gemm"),
        *trials(SKIPPING, 1, "bert-base", "mlp", "canary-gemm"),
        *trials(PLAIN, 2, "bert-base", "mlp", "resnet-50", "canary-gemm"),
        *trials(OTHER, 3, "elementwise"),
        *trials(OF_LAPTOP, -1, "mlp", machine=LAPTOP),
    ]
    return store(stored)


def _ids(url: str) -> tuple[dict[str, str], dict[str, str]]:
    """Machine ids by name, and names of builds by what each page of the H100 calls them."""
    with open_database(url, read_only=True) as database:
        known = {row["build_id"]: row for row in row_dicts(builds(database))}
    return machine_ids(url), known


def test_settings_of_a_trial_make_no_other_build(url: str) -> None:
    boxes, known = _ids(url)
    names = read_choices_on(boxes["h100"])
    assert {names.builds[key] for key in names.offered_builds} == {
        "torch 2.11.0",
        "torch 2.13.0",
    }
    of_laptop = read_choices_on(boxes["laptop"])
    assert [of_laptop.builds[key] for key in of_laptop.offered_builds] == ["torch 2.11.0"]
    assert set(names.builds) == set(known)


def test_only_the_builds_of_the_chosen_machine_are_offered(url: str) -> None:
    boxes, _ = _ids(url)
    for machine, offered in (("h100", 2), ("laptop", 1)):
        page = opened(Link(page=Page.OVERVIEW, machine=boxes[machine]))
        assert len(selector(page, "build").options) == 1 + offered


def test_of_very_many_builds_the_newest_are_offered_and_that_of_the_link(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "MOST_OFFERED", 3)
    url = store(make_history(workloads=("mlp",), builds=("2.9.0", "2.10.0", "2.11.0", "2.12.0")))
    of_torch = {row["torch"]: key for key, row in _ids(url)[1].items()}
    for chosen, more in (("2.9.0", ["torch 2.9.0"]), ("2.11.0", [])):
        box = selector(opened(Link(page=Page.OVERVIEW, build=of_torch[chosen])), "build")
        assert box.options == ["Newest: torch 2.12.0", "torch 2.12.0", "torch 2.11.0", *more]
        assert box.value == of_torch[chosen]
        assert box.help.startswith(f"{3 + len(more)} of 5 are offered")


def test_an_upgrade_opens_on_the_newest_pair_with_comparable_cases(url: str) -> None:
    """Not on what was measured last, of which nothing can be compared."""
    boxes, known = _ids(url)
    link = with_builds(Link(page=Page.UPGRADE, machine=boxes["h100"]))
    base, head = (known[str(key)] for key in (link.base, link.head))
    assert (base["torch"], head["torch"]) == ("2.11.0", "2.13.0")
    said = texts(opened(Link(page=Page.UPGRADE, machine=boxes["h100"])))
    assert "Compared 2 of" in said.replace("\xa0", " ")


def test_a_newer_release_that_took_turns_is_no_base_of_an_older_one(store: Store) -> None:
    """Also where somebody looked closer at the older one since; after going back it is its base."""
    turns = stepping_history(1.0, 1.4, builds=("2.11.0", "2.13.0"))
    both = [trial.model_copy(update={"run_id": "turns"}) for trial in turns]
    look = make_trial(build="2.11.0", started_at=START + timedelta(days=9), run_id="look", suite=None)
    url = store([*both, look])
    boxes, known = _ids(url)
    of_torch = {row["torch"]: key for key, row in known.items()}
    (machine,) = boxes.values()
    older = Link(page=Page.UPGRADE, machine=machine, head=of_torch["2.11.0"])
    assert with_builds(older) == older
    newer = Link(page=Page.UPGRADE, machine=machine, head=of_torch["2.13.0"])
    assert with_builds(newer).base == of_torch["2.11.0"]
    back = make_trial(build="2.11.0", started_at=START + timedelta(days=10), run_id="back")
    store([*both, look, back])
    assert with_builds(older).base == of_torch["2.13.0"]


def test_only_strategies_measured_here_are_offered(store: Store) -> None:
    small = make_history(workloads=["mlp"], machines=["one"], strategies=("eager", "default", "cudagraphs"))
    other = make_history(
        workloads=["mlp"],
        machines=[make_machine("two", threads=77)],
        strategies=("eager", "default", "max-autotune"),
    )
    store([*small, *other])
    for machine, offered in (("one", ["default", "cudagraphs"]), ("two", ["default", "max-autotune"])):
        for page in (Page.MODES, Page.WORKLOAD, Page.TRIAL):
            shown = selector(opened(Link(page=page, machine=machine, focus="mlp")), "strategy").options
            assert {each.replace("\\", "") for each in shown} - {"eager"} == set(offered)


def test_any_number_of_steps_can_be_planned(store: Store) -> None:
    store(make_history(workloads=["mlp"]))
    test = opened(Link(page=Page.BREAK_EVEN))
    field = next(each for each in test.number_input if each.label == "Steps per process")
    field.set_value(12_347).run()
    assert "12,347 steps" in texts(test)
