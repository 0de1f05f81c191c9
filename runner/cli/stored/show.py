"""`compilewatch show`: every fact of one trial."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from compilewatch.db.cause.after_ready import after_ready_texts
from compilewatch.db.cause.caches import lookup_texts
from compilewatch.db.cause.compiler_change import autotuned_texts, generated_text
from compilewatch.db.cause.memory_change import held_texts
from compilewatch.db.cause.notes import cache_texts, compiled_texts, rank_texts, trial_notes, utilization_text
from compilewatch.db.cause.sentences import (
    LISTED,
    cause_of_compiling,
    explained,
    family_rows,
    profile_rows,
    work_text,
)
from compilewatch.db.cause.trial_words import (
    compile_cost_text,
    compile_texts,
    device_time_figures,
    eager_before,
    loop_text,
    losses_sentence,
    main_figures,
    numerics_sentence,
    other_figures,
    process_text,
    roofline,
    sample_count_text,
    step_times,
    stream_texts,
    threads_text,
    throughput_figures,
)
from compilewatch.db.metrics.eligibility import WILD, wild_trials
from compilewatch.db.queries.case_parts import roofs_of
from compilewatch.db.queries.records import ranks_of
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trials_frame
from compilewatch.db.records.trial import Memory, SourceKind, StrategyKind, Trial
from compilewatch.db.units import MISSING, count, duration, moment, plural, size, words
from compilewatch.runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, facts_table
from compilewatch.runner.process.trace import REPORT, trace_directory

Facts = list[tuple[str, str]]


def show(
    trial_id: Annotated[str, typer.Argument(metavar="TRIAL", help="A trial's id.")],
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Every fact of one trial. Example: compilewatch show 01KA8Z7Q3V5T2M9N4R6S8W0XYZ"""
    settings = settings_of(config, db)
    with database_of(settings, migrate=False) as database:
        trial = trial_record(database, trial_id)
        bound = roofline(trial, roofs_of(database, trial.run_id))
        of_case = Filters(
            runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
        )
        siblings = trials_frame(database, of_case)
        ranks = ranks_of(database, trial)
    if json_:
        print_document(trial.model_dump(mode="json", by_alias=True))
        return 0
    facts = facts_of(trial, settings.data_dir) + ([("roofline", bound.sentence)] if bound else [])
    if trial.trial_id in set(siblings["trial_id"][wild_trials(siblings)]):
        facts.append(("set aside", WILD))
    facts += rank_texts(ranks)
    console().print(facts_table(facts))
    return 0


def facts_of(trial: Trial, data_dir: Path) -> list[tuple[str, str]]:
    """Name and text of what a person wants to know of one trial."""
    cold, memory, compiler = trial.cold_start, trial.memory, trial.compiler
    facts = [
        ("trial", trial.trial_id),
        ("run", trial.run_id),
        ("source", _source(trial)),
        ("started", moment(trial.started_at)),
        ("case", f"{trial.workload.name} / {trial.strategy.name}"),
        ("machine", f"{trial.machine.name}: {trial.machine.device_name}"),
        ("build", f"torch {trial.build.torch}, Python {trial.build.python or MISSING}"),
        *([("process", text)] if (text := process_text(trial)) else []),
        ("status", trial.status.value),
        *_claimed(trial),
    ]
    if trial.failure is not None:
        facts += [("failure", f"{words(trial.failure.kind.value)}: {trial.failure.message}")]
        facts += [("log", trial.failure.log_tail)] if trial.failure.log_tail else []
    facts += [("note", text) for text in trial_notes(trial)]
    facts += throughput_figures(trial)
    if trial.latency_samples_ns:
        samples = trial.latency_samples_ns
        facts += [("latency", f"{duration(median(samples))} over {plural(len(samples), 'sample')}")]
    if trial.control_latency_samples_ns:
        facts += [("eager control", duration(median(trial.control_latency_samples_ns)))]
    facts += [("eager", ", ".join(eager))] if (eager := eager_before(trial)) else []
    facts += device_time_figures(trial) + stated_texts(trial) + sampling_texts(trial)
    if cold is not None:
        facts += [
            ("time to first result", duration(cold.total_ns)),
            ("first call", duration(cold.first_call_ns)),
        ]
        facts += [("compile cost", cost)] if (cost := compile_cost_text(trial)) else []
        phases = cold.phases_ns.model_dump() if cold.phases_ns else {}
        facts += [
            (f"  {words(name)}", duration(value)) for name, value in phases.items() if value is not None
        ]
    facts += memory_texts(memory) if memory is not None else []
    if trial.device_state is not None and (busy := trial.device_state.utilization_percent) is not None:
        utilization = utilization_text(busy, eager=trial.strategy.kind is StrategyKind.EAGER)
        facts.append(("GPU utilization", utilization))
    if compiler is not None:
        facts += [("graphs", count(compiler.graphs)), ("captured operations", count(compiler.ops_captured))]
        facts += [("compiled with", text)] if (text := threads_text(trial)) else []
        facts += [*compiled_texts(compiler), *cache_texts(compiler)]
        facts += [("generated code", text)] if (text := generated_text(compiler)) else []
        facts += [("autotuned", text) for text in autotuned_texts(compiler)]
        events = [("graph break", event) for event in compiler.graph_breaks or ()]
        events += [("recompile", event) for event in compiler.recompiles or ()]
        facts += [("what helps", text) for text in compiler.break_hints or ()]
        facts += [("skipped frame", text) for text in compiler.skipped_frames or ()]
        facts += [("warning", text) for text in compiler.warnings or ()]
        facts += [
            (name, f"{event.count} x {event.location or MISSING}: {event.reason}") for name, event in events
        ]
        facts += after_ready_texts(compiler.after_ready) if compiler.after_ready else []
        facts += lookup_texts(compiler.cache_keys) if compiler.cache_keys else []
    if trial.stream is not None:
        facts += stream_texts(trial.stream)
        facts += [(f"  {where}", what) for where, what in compile_texts(trial.stream)]
    if trial.numerics is not None:
        numerics = (words(trial.numerics.status.value), numerics_sentence(trial.numerics))
        facts += [("numerics", ", ".join(filter(None, numerics)))]
        training = trial.numerics.training
        facts += [] if training is None else [("training", losses_sentence(training))]
    return facts + profile_texts(trial) + trace_texts(trial, data_dir)


def _claimed(trial: Trial) -> list[tuple[str, str]]:
    """Options and environment as the record has them, whoever wrote it."""
    options = [(f"option {name}", str(value)) for name, value in trial.strategy.options.items()]
    environment = trial.build.settings.get("environment")
    if not isinstance(environment, dict):
        return options
    return options + [("environment", f"{name}={value}") for name, value in environment.items()]


def _source(trial: Trial) -> str:
    """Where the numbers come from, and what that leaves open."""
    if trial.source.kind is SourceKind.MEASURED:
        return f"measured by {trial.source.name}"
    samples = len(trial.latency_samples_ns)
    known = plural(samples, "sample") if samples else "only a summary, no samples"
    return f"imported from {trial.source.name}: {known}"


def sampling_texts(trial: Trial) -> Facts:
    """Why there are as many samples as there are."""
    return [] if trial.sampling is None else [("sampling", sample_count_text(trial.sampling))]


def stated_texts(trial: Trial) -> Facts:
    """What its source states of a trial that carries no samples; other figures by the source's own names."""
    if trial.summary is None:
        return []
    stated = [] if trial.latency_samples_ns else main_figures(trial.summary)
    loop = [("loop", text)] if (text := loop_text(trial.summary)) else []
    others = [(f"  {name}", text) for name, text in other_figures(trial.summary)]
    return [*stated, *loop, *([("figures of the source", "in its own units"), *others] if others else [])]


def memory_texts(memory: Memory) -> Facts:
    """The peaks that are known; the peak of the process where nothing closer is."""
    named = [
        ("peak memory", memory.peak_bytes),
        ("  in pools of CUDA graphs", memory.graph_pool_bytes),
        ("  of eager", memory.control_peak_bytes),
        ("  with compilation", memory.peak_with_compile_bytes),
        ("  reserved", memory.peak_reserved_bytes),
        ("  of the process", memory.peak_rss_bytes),
    ]
    return [(name, size(value)) for name, value in named if value is not None] + held_texts(memory)


def profile_texts(trial: Trial) -> Facts:
    """The sentence first, then the figures and what takes longest."""
    profile = trial.profile
    if profile is None:
        return []
    times = step_times(trial)
    facts: Facts = [("why", explained(trial) or MISSING)]
    for name, eager, own in profile_rows(profile, times):
        facts.append((f"  {name}", eager if profile.control is None else f"{own} (eager {eager})"))
    work = work_text(profile, times)
    facts += [("  work of eager", work)] if work else []
    cause = cause_of_compiling(trial)
    for row in family_rows(cause.change) if cause else ():
        facts.append((f"  {row['family']}", f"{row['after']} (eager {row['before']})"))
    for entry in profile.own.top[:LISTED]:
        facts.append((f"  {duration(entry.self_ns)}", f"{entry.calls:g} x {entry.name}"))
    return facts


def trace_texts(trial: Trial, data_dir: Path) -> Facts:
    """Where the compiler's log and its report lie, as a path where this is the machine that has them.

    What a record says of its paths is shown as text; a path here is made of the trial's id alone.
    """
    trace = trial.trace
    if trace is None:
        return []
    here = trace_directory(data_dir, trial.trial_id)
    if not here.is_dir():
        where = f"{trace.directory} below the data directory of {trial.machine.name}"
        return [("trace", f"{where}, {size(trace.size_bytes)}")]
    none = "none; with `pip install compilewatch[trace]` the next trace gets one"
    report = none if trace.report is None else (here / REPORT).as_uri()
    return [("trace", f"{here}, {size(trace.size_bytes)}"), ("  report", report)]
