"""`compilewatch advise`: from a model to what to do with it, within a time."""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.table import Table

from compilewatch.db.cells import plain
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, printable
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.ids import workload_identity
from compilewatch.db.records.strategies import EAGER, parse_strategy
from compilewatch.db.records.trial import Strategy, StrategyKind
from compilewatch.db.store.trials import set_advice
from compilewatch.db.units import MISSING, count, duration, plural, ratio
from compilewatch.db.verdicts.advice import (
    SCHEMA,
    advice_lines,
    answer,
    ends,
    keep_lines,
    look_range,
    named,
    paste,
)
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.cli import options
from compilewatch.runner.cli.front import EXIT_CANNOT, EXIT_INTERRUPTED
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    DeviceOption,
    JsonOption,
    database_of,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay, measure
from compilewatch.runner.output.tables import answer_lines, console, plain_table, print_lines
from compilewatch.runner.plan.durations import Case, Durations, stored_durations_s
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.regressions.notify import address
from compilewatch.runner.search.advice import (
    WARM,
    Look,
    Objective,
    Price,
    Question,
    Racing,
    Screening,
    State,
    race_of,
    raced_strategies,
    with_batches,
    with_candidates,
)
from compilewatch.runner.search.environments import announce

SUITE_SCHEMA = "compilewatch.advise-suite/1"
MOST_PLANNED = 4_000
"""Trials of all candidates together: a plan is made before anybody knows which are measured."""
_STEPS = 10_000
_HOUR_S = 3600.0


def advise(
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD",
            help="By name, module:function or LIBRARY:MODEL.",
            autocompletion=options.workloads,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help="Every workload of a suite in place of one, each in its part of the time.",
            autocompletion=options.suites,
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, max=10_080, help="Of measuring, at most.")] = 30.0,
    objective: Annotated[
        Objective, typer.Option(help="What the choice is to be best at.")
    ] = Objective.LATENCY,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of a process, for --objective cost. Unset there: 10,000."),
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Times that such a process starts again with the caches that its first start filled, for "
            "--objective cost. Unset there: filled caches are filled at every start.",
        ),
    ] = None,
    device: DeviceOption = "auto",
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Say what to do with a model: stay eager, or which torch.compile to paste, by how much, from which step.

    Example: compilewatch advise my_models:build --minutes 30

    Candidates race in fresh processes, each against eager beside it; who is shown to be worse leaves. Ends
    when it is decided or at its time; the same command again goes on. Exits 1 where the model itself fails.
    """
    for option, value in (("--steps", steps), ("--restarts", restarts)):
        if value is not None and objective is not Objective.COST:
            raise ConfigError(
                f"{option} is for --objective cost, and this is {objective}.", "Add --objective cost."
            )
    if (workload is None) == (suite is None):
        raise ConfigError(
            "advise is for one workload or for one suite.", "Name one: compilewatch advise encoder."
        )
    settings = settings_of(config, db)
    # A name typed wrongly is said at once, before an interpreter spends seconds importing torch.
    chosen = select(settings, suite=suite, workloads=[workload] if workload else [], strategies=[EAGER.name])
    price = Price(objective, steps or _STEPS, restarts)
    questions = [ModelQuestion(settings, each, price) for each in chosen.workloads]
    with UnderWay("asking the interpreter for its torch"):
        facts = check_interpreter()
    resolved = resolve_device(settings, [facts], device)
    require_space(settings.data_dir)
    until_s = time.monotonic() + 60 * minutes
    documents = []
    with database_of(settings) as database:
        around = database, settings, resolved, facts.path
        if len(questions) > 1 and not _look(questions, *around, 60 * minutes):
            announce("Interrupted while looking at the models; the same command goes on.")
            return EXIT_INTERRUPTED
        for place, question in enumerate(questions):
            # What is decided early leaves its time to the others.
            left_s = max(0.0, until_s - time.monotonic()) if place else 60 * minutes
            document = question.advised(database, resolved, facts.torch, left_s / (len(questions) - place))
            documents.append(document)
            if not json_:
                _print(document, settings)
            if document["interrupted"]:
                break
    if json_ and suite is None:
        print_document(documents[0])
    elif json_:
        print_document({"schema": SUITE_SCHEMA, "suite": suite, "models": documents})
    elif suite is not None:
        console().print(_suite_table(documents))
    if documents[-1]["interrupted"]:
        return EXIT_INTERRUPTED
    if any(document["broken"] for document in documents):
        return 1
    return 0 if any(document["measured"] for document in documents) else EXIT_CANNOT


def _look(
    questions: list[ModelQuestion],
    database: Database,
    settings: Settings,
    device: str,
    interpreter: str,
    seconds: float,
) -> bool:
    """Take a look at each of a suite, and put first those whose range of speedup crosses 1 or is unknown.
    False where it was interrupted.
    """
    plan = plan_run(
        settings,
        workloads=[each.definition.name for each in questions],
        strategies=(EAGER.name,),
        trials=1,
        device=device,
        diagnostics=Diagnostics(profile=True),
    )
    announce(f"A look at {plural(len(questions), 'model')}: eager alone, profiled.")
    screening = Screening(database, plan.runs[0].run_id)
    durations = Durations(stored_durations_s(database, plan))
    outcome, _ = measure(*(plan, database, settings, durations, seconds), wanted=screening.wanted)
    if outcome.interrupted:
        return False
    compiled = parse_strategy("default")
    looks = screening.looks(
        (spec.model_copy(update={"strategy": compiled}) for spec in plan.trials), interpreter
    )
    for each in questions:
        each.look = looks.get(each.definition.name)
    questions.sort(key=lambda each: abs(each.look.side) if each.look else 0)
    return True


class ModelQuestion:
    """What somebody asks of one workload. `look` is the one that was taken before anything was compiled."""

    look: Look | None = None

    def __init__(self, settings: Settings, definition: WorkloadDefinition, price: Price) -> None:
        self.definition = definition
        self.price = price
        self.batches: dict[str, int | None] = {self.definition.name: self.definition.batch_size}
        if price.objective is Objective.THROUGHPUT:
            settings, larger = with_batches(settings, self.definition)
            self.batches |= larger
        self.settings = settings
        self.not_applicable: dict[str, str] = {}

    def advised(self, database: Database, device: str, torch: str, seconds: float) -> dict[str, Any]:
        """Race for so long, and the document of what came of it."""
        settings = self.settings
        plan, cases = self.plan(device, seconds)
        question = Question(
            objective=self.price.objective,
            steps=self.price.steps if self.price.objective is Objective.COST else None,
            restarts=self.price.restarts,
            strategies=tuple(sorted({strategy for _, strategy in cases})),
            device=device,
            torch=torch,
            settings=(
                *(settings.run.matmul_precision, str(settings.run.compile_threads), str(settings.threads)),
            ),
            workloads=(workload_identity(self.definition.record()),),
        )
        plan, racing, begun = _begun(plan, cases, question, database, self)
        where = "the CPU" if device == "cpu" else device
        announce(
            f"{self.definition.name}: {plural(len(cases) - 1, 'candidate')} against eager on {where}, "
            f"torch {torch}, for {duration(round(seconds) * 1e9)} at most."
        )
        outcome, _ = measure(
            *(plan, database, settings, racing.durations, seconds), wanted=racing.wanted, begun=begun
        )
        racing.read()
        facts = {"interrupted": outcome.interrupted, "measured": outcome.measured}
        document: dict[str, Any] = self.document(plan, racing, database) | facts
        if racing.measured:
            set_advice(database, racing.run_id, document)
        return document

    def plan(self, device: str, seconds: float) -> tuple[Plan, dict[Case, str]]:
        """A slot for each trial that may be measured, in rounds, and the candidates by workload and strategy.
        The last slots are those of the choice from filled caches.
        """
        names = raced_strategies(self.price.objective, self.definition, device)
        settings = with_candidates(self.settings, names)
        warm = [name + WARM for name in names if _can_be_warm(name)]
        every = [EAGER.name, *names, *(name for name in warm if name not in names)]
        rounds = min(math.ceil(seconds), MOST_PLANNED // (len(every) * len(self.batches)))
        plan = plan_run(
            settings, workloads=list(self.batches), strategies=every, trials=max(1, rounds), device=device
        )
        run = plan.runs[0].model_copy(update={"planned_trials": None})
        raced = [spec for spec in plan.trials if spec.strategy.name in (EAGER.name, *names)]
        filled = [spec for spec in plan.trials if spec.strategy.name in set(warm) - set(names)]
        last = [spec for spec in filled if spec.round == 0]
        self.not_applicable = {
            each.strategy: each.reason for each in plan.not_applicable if each.strategy in names
        }
        # Who goes first matters for the first round alone: afterwards each trial is chosen.
        place = {name: number for number, name in enumerate(every)}
        raced.sort(key=lambda spec: (spec.round, place[spec.strategy.name]))
        cases = {
            (spec.workload.name, spec.strategy.name): self._candidate(spec.workload.name, spec.strategy.name)
            for spec in raced
        }
        return plan.model_copy(update={"runs": (run,), "trials": (*raced, *last)}), cases

    def _candidate(self, workload: str, strategy: str) -> str:
        return strategy if workload == self.definition.name else f"{strategy}, batch {self.batches[workload]}"

    def document(self, plan: Plan, racing: Racing, database: Database) -> dict[str, Any]:
        """The answer, and all it rests on."""
        race = racing.race
        frame = without_canaries(trials_frame(database, Filters(runs=(racing.run_id,))))
        rows: dict[Case, dict[Any, Any]] = {
            (row["workload"], row["strategy"]): row for row in summarize_cases(frame).to_dict("records")
        }
        choice = race.choice()
        by_name = {name: case for case, name in racing.cases.items()}
        strategies = {spec.strategy.name: spec.strategy for spec in plan.trials}
        chosen, case = strategies[by_name[choice][1]], by_name[choice]
        first = next((rows[case] for case in (case, *racing.cases) if _is_compiled(rows.get(case))), None)
        paying = [rows[each] for each in (case, (case[0], case[1] + WARM)) if _is_compiled(rows.get(each))]
        paying = [row for row in paying if not row["first_look"]]
        candidates = [self._row(name, racing) for name in racing.cases.values()]
        candidates.sort(key=lambda row: (row["candidate"] != choice, -(row["gain"] or 0.0)))
        return {
            "schema": SCHEMA,
            "run_id": racing.run_id,
            "workload": self.definition.name,
            "batch_size": self.definition.batch_size,
            "objective": self.price.objective.value,
            "steps": self.price.steps if self.price.objective is Objective.COST else None,
            "restarts": self.price.restarts,
            "look": self.look and self.look.document(),
            "choice": choice,
            "shown": choice in race.faster,
            "decided": race.is_decided,
            "broken": racing.broken,
            "paste": paste(chosen, self.definition.task, self.definition.regions),
            "configuration": _configuration(self.definition.name, chosen),
            "pays_off": next(iter(answer_lines(paying)), None),
            "compiled": first and _known(first, ("graph_breaks", "recompiles", "numerics_status")),
            "figures": {
                name: _figures(rows.get(each))
                for name, each in (
                    ("eager", by_name[EAGER.name]),
                    ("cold", case),
                    ("warm", (case[0], case[1] + WARM)),
                )
            },
            "candidates": candidates,
            "not_applicable": self.not_applicable,
            "one_more_hour": _one_more_hour(racing),
        }

    def _row(self, name: str, racing: Racing) -> dict[str, Any]:
        race = racing.race
        workload, strategy = next(case for case, each in racing.cases.items() if each == name)
        cost, ends = race.against_eager(name) if race.trials(name) else (None, None)
        trials = racing.trials(name)
        stands = "no better" if name in race.resting else "open" if trials else "not measured"
        if name == race.choice():
            stands = "choice"
        elif name == EAGER.name and race.leader in race.faster:
            stands = "worse"
        return {
            "candidate": name,
            "workload": workload,
            "strategy": strategy,
            "batch_size": self.batches[workload],
            "trials": trials,
            "gain": 1.0 if name == EAGER.name else cost and 1.0 / cost,
            "interval": ends and (1.0 / ends[1], 1.0 / ends[0]),
            "stands": race.left[name].value if name in race.left else stands,
            "why": racing.whys.get(name, f"{race.leader} is shown to be better"),
        }


def _begun(
    plan: Plan, cases: dict[Case, str], question: Question, database: Database, model: ModelQuestion
) -> tuple[Plan, Racing, tuple[str, ...]]:
    """The plan, in the run that an earlier command began and did not decide where there is one."""
    settings = model.settings
    state = State.load(question, settings.data_dir)
    run = plan.runs[0]

    def racing(run_id: str) -> Racing:
        race = race_of(list(cases.values()), model.price.objective, settings.policy)
        durations = Durations(stored_durations_s(database, plan))
        made = Racing(database, run_id, race, cases, model.price, durations)
        made.read()
        return made

    before = None if state.run_id is None else racing(state.run_id)
    if before is None or before.race.is_decided or before.broken or not before.measured:
        state.run_id = run.run_id
        state.save(settings.data_dir)
        return plan, racing(run.run_id), ()
    announce(f"Run {before.run_id} goes on, with {plural(before.measured, 'trial')} so far.")
    trials = tuple(spec.model_copy(update={"run_id": before.run_id}) for spec in plan.trials)
    runs = (run.model_copy(update={"run_id": before.run_id}),)
    return plan.model_copy(update={"runs": runs, "trials": trials}), before, (before.run_id,)


def _one_more_hour(racing: Racing) -> str:
    """How many trials an hour has, and what they would tell if things are as measured."""
    race, price, leader = racing.race, racing.seconds(), racing.race.leader
    waiting = [name for name in race.contenders if name != EAGER.name or race.trials(name)]
    trials = int(_HOUR_S / sum(price[name] for name in waiting)) if waiting else 0
    names, left_s = [], _HOUR_S
    for name in waiting:
        more = race.more_trials(name) or 0
        left_s -= more * (price[name] + (price[leader] if name != leader else 0.0))
        names += [name] if more and left_s >= 0 else []
    hour = f"One more hour has {plural(trials, 'trial')} of each"
    return f"{hour}, and would tell of {', '.join(names)} if things are as measured." if names else f"{hour}."


def _can_be_warm(name: str) -> bool:
    return not {"warm", "portable"} & set(name.split("+")) and name != "packaged"


def _is_compiled(row: Mapping[Any, Any] | None) -> bool:
    return row is not None and row["strategy_kind"] == StrategyKind.COMPILE and row["status"] == "ok"


def _known(row: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: plain(row[name]) for name in names}


def _figures(row: Mapping[Any, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    names = ("latency_ns", "time_to_first_result_ns", "compile_cost_ns", "peak_bytes", "control_peak_bytes")
    found = _known(row, names)
    return {"first_result_ns": found.pop("time_to_first_result_ns"), **found}


def _configuration(workload: str, strategy: Strategy) -> list[str]:
    """Lines that measure the choice and eager as a suite."""
    compiled = "default" if strategy.kind is StrategyKind.EAGER else strategy.name
    lines = [
        "[[suite]]",
        'name = "advised"',
        f"workloads = {_toml([workload])}",
        f"strategies = {_toml(['eager', compiled])}",
    ]
    if strategy.options:
        entries = ", ".join(f"{_toml(name)} = {_toml(value)}" for name, value in strategy.options.items())
        name = _toml(strategy.name.partition("+")[0])
        lines += ["[[strategy]]", f"name = {name}", f"options = {{ {entries} }}"]
    return lines


def _toml(value: object) -> str:
    """A string, number, flag or list: those of JSON are TOML's."""
    return json.dumps(value, ensure_ascii=False)


def _print(document: Mapping[str, Any], settings: Settings) -> None:
    print_lines([*map(printable, answer(document)), ""])
    console().print(_table(document))
    print_lines([*map(printable, advice_lines(document)), *keep_lines(document)])
    if not document["decided"] and not document["broken"]:
        print_lines(["", "The same command again goes on with these trials."])
    print(f"Run: {document['run_id']}", file=sys.stderr)
    link = f"/modes?{urlencode({'focus': document['workload']})}"
    if page := address(settings.notify.base_url, link):
        print(f"Page: {page}", file=sys.stderr)
    print(f"As a report: compilewatch report create --link {shlex.quote(link)}", file=sys.stderr)


def _table(document: Mapping[str, Any]) -> Table:
    """A row for each candidate, the choice first."""
    headings = ("candidate", "trials", "against eager", "at 95 %", "stands")
    rows = [
        (row["candidate"], count(row["trials"]), ratio(row["gain"]), ends(row) or MISSING, row["stands"])
        for row in document["candidates"]
    ]
    return plain_table(headings, rows, right=("trials", "against eager"))


def _suite_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each model: what to do with it."""
    headings = ("workload", "looked like", "choice", "against eager", "at 95 %", "is")
    rows = []
    for document in documents:
        choice = named(document, document["choice"])
        known = "shown" if document["shown"] else "decided" if document["decided"] else "open"
        stands = "broken" if document["broken"] else known
        model = document["workload"], look_range(document) or MISSING, document["choice"]
        rows.append((*model, ratio(choice["gain"]), ends(choice) or MISSING, stands))
    return plain_table(headings, rows, right=("against eager",))
