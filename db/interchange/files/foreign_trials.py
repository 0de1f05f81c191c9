"""From what a foreign file says to a trial: facts told, facts asked for, ids that follow from content."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from compilewatch.db.columns.source_metrics import BYTES_OF_UNITS, NS_OF_UNITS, is_rate, unit_of
from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, Place
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.fields import problem
from compilewatch.db.records.ids import (
    identity,
    machine_identity,
    recorded_build_identity,
    strategy_identity,
    workload_identity,
)
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import (
    Build,
    CacheState,
    ColdStart,
    CompilerEvent,
    CompilerFacts,
    Failure,
    FailureKind,
    Machine,
    Source,
    SourceKind,
    Status,
    Strategy,
    StrategyKind,
    Summary,
    Trial,
    Workload,
)

MODES = frozenset({"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"})
# torch.compiler.list_backends(exclude_tags=()) of torch 2.13, those that need no extra package.
BACKENDS = frozenset({"inductor", "cudagraphs", "eager", "aot_eager", "aot_eager_decomp_partition", "aot_ts"})
# What people and tools call the ways of executing a model. Letters and digits of a word count, in any case.
_WITH_TORCH = "(?:py)?torch"
_EAGER = re.compile(
    rf"(?:plain|vanilla|native|stock|baseline)?(?:{_WITH_TORCH}2?|pt2?)?(?:enforce)?eager(?:mode)?"
    rf"(?:{_WITH_TORCH}|baseline)?"
    rf"|(?:plain|vanilla|native|stock|baseline)?{_WITH_TORCH}(?:baseline|native|vanilla)?"
    "|baseline|native|vanilla|plain|(?:un|non|not)(?:compiled|optimi[sz]ed)"
    rf"|(?:no|non|not|without|wo)(?:{_WITH_TORCH})?compil(?:e|ation)|(?:{_WITH_TORCH})?compiled?(?:false|off|none)"
    "|false|none|no|off|disabled?|0"
)
_COMPILER = rf"(?:(?:{_WITH_TORCH}2?|pt2)?compiled?|(?:{_WITH_TORCH}|pt2|dynamo)(?=inductor))?"
_COMPILED_WORDS = frozenset(("true", "yes", "on", "enabled", "1", "pt2"))
_COMPILED = re.compile(rf"(?:with|w)?(?:{_WITH_TORCH}2?|pt2)?compiled?(?:true|on)?")
# Engines of their own: what they execute, torch.compile has not compiled.
_ENGINES = {
    **{
        f"{ort}{on}": "onnxruntime"
        for ort in ("onnxruntime", "ort", "onnx")
        for on in ("", "gpu", "cuda", "cpu")
    },
    **dict.fromkeys(("tensorrt", "trt"), "tensorrt"),
    **dict.fromkeys(("aotinductor", "aoti"), "aotinductor"),
    **{name: name for name in ("openvino", "torchscript", "coreml", "executorch")},
}

_SAYING_UNITS = {*NS_OF_UNITS, *BYTES_OF_UNITS, "/s", "x", "%"}
UNTOLD_REASON = "The source counts graph breaks and does not list them."
UNKNOWN = "unknown"
"""A device, dtype or task that neither the source nor an option tells."""
SPEEDUP_ZERO = "The source reports speedup 0: the model failed without a reason."

_NEEDED = {
    "torch": ("the torch version", "--torch 2.13.0"),
    "device": ("the kind of device", "--device cuda"),
    "device_name": ("the GPU (or CPU)", '--device-name "NVIDIA H200"'),
    "measured_at": ("when it was measured", "--measured-at 2026-11-20"),
    "dtype": ("the dtype", "--dtype bfloat16"),
    "task": ("the task", "--task inference"),
    "strategy": ("whether it was compiled", "--strategy eager"),
}


class MissingFactError(RecordError):
    """A file does not say what must be known; `fields` are the fields of ImportOptions that tell it."""

    def __init__(self, message: str, next_step: str, fields: tuple[str, ...]) -> None:
        super().__init__(message, next_step)
        self.fields = fields


# Known where a word is said to name a strategy; elsewhere such a word may name a library or a variant.
_ALSO_NAMES = frozenset({"pytorch", "torch", "baseline", "native", "vanilla", "plain", *_ENGINES})


class UnknownWordError(RecordError):
    """A file calls a way of executing a model by a word that is not known."""

    def __init__(self, place: Place, word: str) -> None:
        shown = one_line(word, 60)
        super().__init__(
            f"{place}: strategy: {shown} is no word that is known for eager or for a way of compiling.",
            f'Say what it means: --map "{shown}=eager", or a mode of torch.compile, or a name of its own.',
        )


_OF_A_CPU = ("the CPU", '--device-name "AMD EPYC 9654"')
_DTYPES = {
    **dict.fromkeys(("bf16", "torch.bfloat16"), "bfloat16"),
    **dict.fromkeys(("fp16", "half", "torch.float16", "torch.half"), "float16"),
    **dict.fromkeys(("fp32", "float", "torch.float32", "torch.float"), "float32"),
    **dict.fromkeys(("fp64", "double", "torch.float64", "torch.double"), "float64"),
}
_RUNS = re.compile(r"[0-9]+")
_BUILD_FIELDS = set(Build.model_fields) - {"label"}
_MACHINE_FIELDS = set(Machine.model_fields) - {"name"}
_ASKABLE = (*_NEEDED, "cuda", "driver", "python", "machine", "batch_size", "suite")


@dataclass(slots=True)
class ForeignResult:
    """One result as its file tells it.

    `stated` holds facts from the file's content, `named` those from its name, `assumed` what holds unless
    the user says otherwise: keys are fields of Machine and Build plus `machine`, `measured_at`, `dtype`,
    `task`, `batch_size`, `suite`. `device_word` is a model of GPU or CPU as a file's name abbreviates it.
    `raw` is the result as it stands in the file and, with the facts, makes the trial's id. `parts` are
    further fields of Trial, `label` is what the source calls the run; `is_run` says that another label is
    another run. `strategy` is None where neither content nor name tells it.
    """

    place: Place
    workload: str
    strategy: Strategy | None
    raw: Any
    stated: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, Any] = field(default_factory=dict)
    assumed: Mapping[str, Any] = field(default_factory=dict)
    device_word: str | None = None
    shape: dict[str, int] = field(default_factory=dict)
    item: str | None = None
    items_per_iteration: float | None = None
    failure: Failure | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    is_run: bool = False


def compiled(
    name: str, *, backend: str | None = None, mode: str | None = None, dynamic: bool | None = None
) -> Strategy:
    """A compiled strategy whose cache state the source does not say."""
    return Strategy(
        name=name,
        kind=StrategyKind.COMPILE,
        backend=backend,
        mode=mode,
        dynamic=dynamic,
        cache=CacheState.UNKNOWN,
    )


def strategy_called(word: str) -> Strategy:
    """A compiled strategy from one word that may be a mode of torch.compile or a backend of it."""
    if word in MODES:
        return compiled(word, backend="inductor", mode=word)
    if word in BACKENDS:
        return compiled(f"{word} backend" if word == "eager" else word, backend=word)
    return compiled(word)


def engine(name: str) -> Strategy:
    """What executes a model without torch.compile and without eager, such as onnxruntime."""
    return Strategy(name=name, kind=StrategyKind.EXPORT, backend=name, cache=CacheState.UNKNOWN)


def named_strategy(word: str, place: Place, options: ImportOptions) -> Strategy | None:
    """As `strategy_named`, of a word that may be a name of something else: only what can be no other counts,
    and what the user explains.
    """
    explained = _letters(word) in map(_letters, options.words)
    return strategy_named(word, place, options) if explained or _letters(word) not in _ALSO_NAMES else None


def stated_strategy(word: str, place: Place, options: ImportOptions) -> Strategy:
    """As `strategy_named`. Raises UnknownWordError for a word that nobody explains, which may be eager's."""
    strategy = strategy_named(word, place, options)
    if strategy is None:
        raise UnknownWordError(place, word)
    return strategy


def strategy_named(word: str, place: Place, options: ImportOptions) -> Strategy | None:
    """From a word of the file at `place` for a way of executing a model: a known one, or what the user says
    that it means (`--map`); None of any other.
    """
    meant = {_letters(known): strategy for known, strategy in options.words.items()}.get(_letters(word))
    strategy = known_strategy(word)
    if meant is None:
        return strategy
    mapped = known_strategy(meant) or compiled(meant)
    if strategy is not None and strategy != mapped:
        options.not_used(place.file, f"{word}, which is {strategy.name}", f"--map {word}={meant}")
        return strategy
    return mapped


def known_strategy(word: str) -> Strategy | None:
    """What `word` is known to call: eager, a mode or backend of torch.compile, an engine; else None."""
    letters = _letters(word)
    if _EAGER.fullmatch(letters):
        return EAGER
    if letters in _COMPILED_WORDS or _COMPILED.fullmatch(letters):
        return compiled("compiled")
    if letters in _ENGINES:
        return engine(_ENGINES[letters])
    match = _MODE.fullmatch(letters) or _BACKEND.fullmatch(letters)
    return strategy_called(_CALLED_BY_LETTERS[match["called"]]) if match else None


def _letters(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", word.lower())


_CALLED_BY_LETTERS = {_letters(each): each for each in (*MODES, *BACKENDS)} | {"cudagraph": "cudagraphs"}
_MODE = re.compile(
    rf"{_COMPILER}(?:mode)?(?:inductor)?(?:mode)?(?P<called>{'|'.join(map(_letters, MODES))})(?:mode)?"
)
_BACKEND = re.compile(
    rf"{_COMPILER}(?:backend)?"
    rf"(?P<called>cudagraph|{'|'.join(map(_letters, BACKENDS - {'eager'}))})(?:backend)?"
)


def compiler_counts(
    graphs: int | None, breaks: int | None, operations: int | None = None
) -> CompilerFacts | None:
    """What a source counts; of graph breaks it knows only how many. None where it counts nothing."""
    if graphs is None and breaks is None and operations is None:
        return None
    events = [CompilerEvent(reason=UNTOLD_REASON, count=breaks)] if breaks else []
    return CompilerFacts(
        graphs=graphs, ops_captured=operations, graph_breaks=None if breaks is None else events
    )


def compile_cost(nanoseconds: int | None) -> ColdStart | None:
    """A cost that the source gives net of steady calls: as time until steady, with none of them in it."""
    if nanoseconds is None:
        return None
    return ColdStart(until_steady_ns=nanoseconds, calls_until_steady=0)


def failed(message: str, kind: FailureKind = FailureKind.CRASH) -> Failure:
    """A failure of the source; `crash` where it does not say of which kind."""
    return Failure(kind=kind, message=message)


def with_controls(keyed: Sequence[tuple[Hashable, ForeignResult]]) -> Iterator[ForeignResult]:
    """Each result with the latency of the eager one that has its key and stands elsewhere in its file, or in
    another.
    """
    controls = {key: result.parts["summary"].latency_ns for key, result in keyed if _is_eager(result)}
    for key, result in keyed:
        if not _is_eager(result) and key in controls:
            summary: Summary = result.parts["summary"]
            result.parts["summary"] = summary.model_copy(update={"control_latency_ns": controls[key]})
        yield result


def _is_eager(result: ForeignResult) -> bool:
    return result.strategy is not None and result.strategy.kind is StrategyKind.EAGER


def torch_facts(version: str) -> dict[str, str]:
    """ "2.13.0+cu130" as torch, variant and CUDA version; the last two only where the version says them."""
    torch, _, variant = version.partition("+")
    facts = {"torch": torch}
    if variant:
        facts["torch_variant"] = variant
        facts |= cuda_facts(variant)
    return facts


def cuda_facts(variant: str) -> dict[str, str]:
    """The CUDA version that a variant such as "cu128" or "cu118" spells: 12.8, 11.8."""
    match = re.fullmatch(r"cu(\d{2})(\d)", variant)
    return {"cuda": f"{match[1]}.{match[2]}"} if match else {}


def to_trial(result: ForeignResult, source: str, options: ImportOptions) -> Trial:
    """The record of one imported result.

    A fact comes from the content, else from the file's name, else from the options, which relabel nothing.
    Raises MissingFactError naming every option that is still needed, RecordError for a field that is wrong.
    """
    facts = _facts(result, options)
    try:
        machine = Machine(
            name=facts.pop("machine", None) or "imported",
            **{key: facts[key] for key in _MACHINE_FIELDS & facts.keys()},
        )
        build = Build(**{key: facts[key] for key in _BUILD_FIELDS & facts.keys()})
        workload = _workload(result, facts, source)
        strategy: Strategy = facts["strategy"]
        run = identity(
            {
                "source": source,
                "machine": machine_identity(machine),
                "build": recorded_build_identity(build),
                "measured_at": facts["measured_at"].isoformat(),
                "suite": facts.get("suite"),
                # What is told apart by name alone, such as before and after, is two runs.
                **({"label": options.label} if options.label else {}),
            }
        )
        called = result.label if result.is_run and not options.label else None
        if called:
            run = identity({"run": run, "called": called})
        if _own_moment(result) is None:
            options.undated["imp-" + run] = result.place.file
        if options.label and result.label not in (None, options.label):
            options.renamed(result.place.file, result.label, f"--label {options.label}")
        return Trial(
            trial_id="imp-" + _digest(result.raw, run, workload, strategy),
            run_id="imp-" + run,
            started_at=facts["measured_at"],
            suite=facts.get("suite"),
            label=options.label or result.label,
            source=Source(kind=SourceKind.IMPORTED, name=source),
            workload=workload,
            strategy=strategy,
            machine=machine,
            build=build,
            status=Status.FAILED if result.failure else Status.OK,
            failure=result.failure,
            **result.parts | _named_latency(result, options),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])) or "the whole record"
        raise result.place.error(name, problem(first)) from error


def metric_named(text: str) -> tuple[str, str]:
    """Name and unit of the metric of `--latency`, written as NAME or NAME=UNIT; "/s" where it is a rate."""
    name, equals, unit = text.rpartition("=")
    if equals and (unit in NS_OF_UNITS or unit == "/s"):
        return name, unit
    return text, "/s" if is_rate(text) else unit_of(text)


def _named_latency(result: ForeignResult, options: ImportOptions) -> dict[str, Any]:
    """The parts of a trial whose latency is the metric that the user names, where the result states it."""
    summary: Summary | None = result.parts.get("summary")
    if options.latency is None or summary is None or result.failure:
        return {}
    name, unit = metric_named(options.latency)
    value = summary.metrics.get(name)
    if value is None:
        return {}
    own = metric_named(name)[1]
    if own != unit and own in _SAYING_UNITS and NS_OF_UNITS.get(own) != NS_OF_UNITS.get(unit, 0.0):
        raise RecordError(
            f"{result.place}: {one_line(name)}: is in {own} by its name, and --latency says {unit}.",
            "Name the metric without a unit, or another one.",
        )
    if not (unit in NS_OF_UNITS or unit == "/s"):
        raise RecordError(
            f"{result.place}: {one_line(name)}: its name tells no unit of time.",
            f'Name it: --latency "{one_line(name)}=ms", or =/s for what counts per second.',
        )
    if value <= 0:
        raise result.place.error(one_line(name), "must be more than 0")
    own_ns = NS_PER_S / value if unit == "/s" else value * NS_OF_UNITS[unit]
    facts = {"latency_ns": Fields(result.place, {}).whole(name, own_ns), "n": summary.n}
    rate = value if unit == "/s" else None
    return {
        "summary": Summary(**facts, throughput_per_s=rate, metrics=summary.metrics),
        "samples_ns": [],
        "control_samples_ns": [],
    }


def _facts(result: ForeignResult, options: ImportOptions) -> dict[str, Any]:
    stated = _stated_facts(options)
    known: dict[str, Any] = {}
    called, wanted = options.folder_date, options.measured_at
    # Of that very day the option says more than the folder's name.
    on_that_day = called and wanted and wanted.astimezone(UTC).date() == called.date()
    if called and not on_that_day and _own_moment(result) is None:
        known["measured_at"] = called
        options.note(f"{result.place.file}: is of {called:%Y-%m-%d}, as it or its folder is called.")
    for origin in (result.named, result.stated, {"strategy": result.strategy}):
        known |= {key: value for key, value in origin.items() if value is not None}
    for key in sorted(stated.keys() & known.keys() - {"torch_variant"}):
        if _spelled(key, stated[key]) != _spelled(key, known[key]):
            says = "when it was measured" if key == "measured_at" else _words(known[key])
            options.not_used(result.place.file, says, f"--{key.replace('_', '-')} {_words(stated[key])}")
    facts = {
        key: value for key, value in (*result.assumed.items(), *stated.items()) if value is not None
    } | known
    if options.packages:
        libraries = known.get("packages") or {}
        for name, version in options.packages.items():
            if libraries.get(name, version) != version:
                says = f"{name} {libraries[name]}"
                options.not_used(result.place.file, says, f"--package {name}={version}")
        facts["packages"] = {**options.packages, **libraries}
    if stated.get("device", facts.get("device")) != facts.get("device") and "device_name" not in known:
        # The name that was told is that of another device, and this one's nobody tells.
        facts["device_name"] = UNKNOWN
    _require_fitting(result, facts)
    missing = [key for key in _NEEDED if key not in facts]
    if missing:
        needed = _NEEDED | ({"device_name": _OF_A_CPU} if facts.get("device") == "cpu" else {})
        unknown = [needed[key][0] for key in missing]
        raise MissingFactError(
            f"{result.place.file}: does not say {_and(unknown)}.",
            f"Name it with {_and([needed[key][1] for key in missing])}.",
            tuple(missing),
        )
    return facts | {"dtype": _spelled("dtype", facts["dtype"])}


def _own_moment(result: ForeignResult) -> datetime | None:
    """When it was measured, as its file says it, or the tool in the file's name."""
    return result.stated.get("measured_at") or result.named.get("measured_at")


def _stated_facts(options: ImportOptions) -> dict[str, Any]:
    facts: dict[str, Any] = {key: getattr(options, key) for key in _ASKABLE}
    if options.torch:
        facts |= torch_facts(options.torch)
        facts["cuda"] = options.cuda or facts.get("cuda")
    if options.strategy:
        facts["strategy"] = EAGER if options.strategy == EAGER.name else strategy_called(options.strategy)
    return {key: value for key, value in facts.items() if value is not None}


def _require_fitting(result: ForeignResult, facts: Mapping[str, Any]) -> None:
    """Raise RecordError where the device that is named cannot be the one that the file is of."""
    name = facts.get("device_name")
    if name is None:
        return
    word, cpu = result.device_word, facts.get("device") == "cpu"
    if word is not None and not set(_RUNS.findall(word)) <= set(_RUNS.findall(str(name))):
        problem = f"its name says {one_line(word)}"
        problem += "" if name == UNKNOWN else f", which is no {one_line(str(name))}"
    elif cpu and str(name).upper().startswith("NVIDIA"):
        problem = f"it is of a CPU, which no {one_line(str(name))} is"
    else:
        return
    raise RecordError(
        f"{result.place.file}: {problem}.",
        f"Import it alone, with {_OF_A_CPU[1] if cpu else _NEEDED['device_name'][1]}.",
    )


def _spelled(key: str, value: Any) -> Any:
    """The one spelling of a fact that tools write in several ways."""
    return _DTYPES.get(str(value).lower(), value) if key == "dtype" else value


def _words(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    return one_line(str(value.name if isinstance(value, Strategy) else value))


def _workload(result: ForeignResult, facts: Mapping[str, Any], source: str) -> Workload:
    """No foreign format hashes a workload's definition. A version per format keeps an imported series apart
    from every measured one, whose versions are hashes, and from what other tools measured by other means.
    """
    return Workload(
        name=result.workload,
        version=f"imported-{source}",
        task=facts["task"],
        batch_size=facts.get("batch_size"),
        shape=result.shape,
        dtype=facts["dtype"],
        items_per_iteration=result.items_per_iteration,
        item=result.item,
    )


def _digest(raw: Any, run: str, workload: Workload, strategy: Strategy) -> str:
    """Equal for the same result told with the same facts, whatever else stood beside it."""
    # `run` tells the format; with it in the version too, results would lose the ids they have had so far.
    unversioned = workload.model_copy(update={"version": "imported"})
    content = {
        "run": run,
        "workload": workload_identity(unversioned),
        "strategy": strategy_identity(strategy),
        "raw": raw,
    }
    return identity(content) + identity({"again": content})


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
