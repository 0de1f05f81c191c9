"""pytest-benchmark JSON, as written by 4.x and 5.x; times are seconds per round.

The format knows neither eager nor compiled. The pairing rule: one parameter or extra_info entry, the
pair key, tells the strategy of each benchmark: the first whose value is a mode or backend of
torch.compile, yes or no, or a word that `--map` explains; one that the user names tells it by any value.
Benchmarks of the same test whose other parameters are equal are one workload, and the eager one is the
control of the others.

Every round is taken, `median` is the latency; the commit that is noted is that of the code. Pair keys are
`strategy`, `compile_mode`, `mode`, `compile`, `compiled`, `torch_compile` and `backend`, or that of
`--pair-key`. Not taken: batch size, caches, compile cost, memory; tests without a strategy. To name: dtype
and device; GPU and torch unless in `extra_info`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    named_strategy,
    stated_strategy,
    torch_facts,
    with_controls,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Code, Summary, Task

# Looked for in params, then in extra_info, in this order, unless --pair-key names another.
PAIR_KEYS = ("strategy", "compile_mode", "mode", "compile", "compiled", "torch_compile", "backend")
_MACHINE = {
    "torch_git": "pytorch_git_version",
    "machine": "node",
    "cpu_name": "cpu.brand_raw",
    "cpu_count": "cpu.count",
    "python": "python_version",
}
_TORCH_KEYS = ("torch", "torch_version", "pytorch_version")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_Workload = tuple[str, tuple[tuple[str, str], ...]]


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per benchmark, with every round as a sample where the file has them.

    Raises RecordError, also when no pair key is found and when two eager results fit one workload.
    """
    document = json_document(file)
    parsed: list[tuple[_Workload, ForeignResult]] = []
    unpaired: list[RecordError] = []
    for fields in document.objects("benchmarks"):
        try:
            pair = _pair_entry(fields, options)
        except _UnpairedError as error:
            unpaired.append(error)
            continue
        parsed.append(_benchmark(fields, document, options, *pair))
    if unpaired and not parsed:
        raise unpaired[0]
    for each in unpaired:
        options.note(f"{each.message.removesuffix('.')}: left out. {each.next_step}")
    controls = Counter(workload for workload, result in parsed if result.strategy == EAGER)
    for (test, _), times in controls.most_common(1):
        if times > 1:
            raise RecordError(
                f"{file.shown}: {test} has two eager results with equal parameters.",
                "Name the parameter of eager and compiled with --pair-key.",
            )
    yield from with_controls(parsed)


def _benchmark(
    fields: Fields, document: Fields, options: ImportOptions, key: str | None, value: object
) -> tuple[_Workload, ForeignResult]:
    test = (fields.text("fullname", 1000) or fields.required_text("name")).split("[", 1)[0]
    params = fields.part("params").data
    others = tuple(sorted((name, str(param)) for name, param in params.items() if name != key))
    described = ", ".join(f"{name}={param}" for name, param in others)
    workload = fields.storable("params", f"{test}[{described}]" if described else test)
    result = ForeignResult(
        place=fields.place,
        workload=workload,
        strategy=None
        if key is None
        else stated_strategy(fields.storable(key, _word(value) or "compiled"), fields.place, options),
        raw={name: fields.data.get(name) for name in ("fullname", "params", "extra_info", "stats")},
        stated=_facts(fields, document, options),
        assumed={"task": Task.FUNCTION, "measured_at": moment(document.part("commit_info"), "time")},
        parts=_parts(fields.part("stats")) | _code(document.part("commit_info")),
    )
    return (test, others), result


class _UnpairedError(RecordError):
    """Nothing names eager or compiled."""


def _pair_entry(fields: Fields, options: ImportOptions) -> tuple[str | None, Any]:
    """The key and its value; no key where the user tells the strategy. Raises _UnpairedError without any."""
    keys = (options.pair_key,) if options.pair_key else PAIR_KEYS
    for part in (fields.part("params"), fields.part("extra_info")):
        for key in keys:
            word = _word(part.data.get(key))
            if key in part.data and (options.pair_key or named_strategy(word, fields.place, options)):
                return key, part.data[key]
    if options.strategy is not None:
        return None, None
    here = {**fields.part("extra_info").data, **fields.part("params").data}
    problem, meant = f"no {', '.join(keys)}", ""
    if (unknown := next((key for key in keys if key in here), None)) is not None:
        word = one_line(_word(here[unknown]), 60)
        problem, meant = f"{unknown} is {word}", f'Say what it means: --map "{word}=default". '
    name = one_line(fields.text("name", 1000) or fields.path)
    raise _UnpairedError(
        f"{fields.place}: {fields.path}: {name}: nothing names eager or compiled ({problem}).",
        f"{meant}Name the parameter or extra_info entry with --pair-key, or --strategy for all without one.",
    )


def _word(value: object) -> str:
    return "none" if value is None else str(value).strip()


def _facts(fields: Fields, document: Fields, options: ImportOptions) -> dict[str, Any]:
    info, extra = document.part("machine_info"), fields.part("extra_info")
    version = next((text for key in _TORCH_KEYS for part in (extra, info) if (text := part.text(key))), None)
    device = extra.text("device")
    on_cpu = (device or options.device) == "cpu"
    system = " ".join(text for key in ("system", "release") if (text := info.text(key)))
    return {
        **(torch_facts(version) if version else {}),
        **info.facts(_MACHINE),
        **extra.facts({key: key for key in ("device", "dtype", "batch_size")}),
        "device_name": info.part("cpu").text("brand_raw") if on_cpu else extra.text("device_name"),
        "os": system or None,
        "measured_at": moment(document, "datetime"),
    }


def _code(commit: Fields) -> dict[str, Any]:
    """The commit of the code that was measured, where the tool found one."""
    name = commit.text("id")
    if name is None or not _COMMIT.fullmatch(name):
        return {}
    return {"code": Code(commit=name, dirty=commit.flag("dirty"))}


def _parts(stats: Fields) -> dict[str, Any]:
    latency = stats.duration_ns("median", NS_PER_S)
    if latency is None:
        stats.fail("median", "is missing")
    samples = [stats.whole("data", seconds * NS_PER_S) for seconds in stats.numbers("data")]
    return {"samples_ns": samples, "summary": Summary(latency_ns=latency, n=stats.count("rounds"))}
