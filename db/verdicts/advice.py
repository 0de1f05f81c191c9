"""What `advise` found of a model, in words: of its document, which is stored with the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilewatch.db.records.strategies import EAGER, compile_arguments
from compilewatch.db.records.trial import Strategy, StrategyKind, Task
from compilewatch.db.units import count, duration, interval, percent, plural, ratio, size

SCHEMA = "compilewatch.advise/1"
_TOO_WIDE = 100.0
"""Times its lower end; a wider interval is not shown."""
_THREADS = "compile_threads"
"""How many there are the compiler asks for when it is imported, and starts them; an option comes too late."""
_CONFIDENCE = "95 % over the whole race"
_GAIN = {
    "latency": "it is {} as fast as eager",
    "throughput": "it has {} the throughput of eager",
    "memory": "eager needs {} its memory",
    "cold-start": "eager takes {} its time to the first result",
    "cost": "eager takes {} its time for the whole process",
}


def paste(strategy: Strategy, task: Task, regions: Sequence[str] = ()) -> str:
    """The line that does in a program what the strategy does in a trial; `regions` are the class names of
    repeated blocks that the workload names.
    """
    if strategy.kind is StrategyKind.EAGER:
        return "# stay eager: no torch.compile"
    name = "function" if task is Task.FUNCTION else "model"
    if strategy.kind is not StrategyKind.COMPILE:
        return f"# package it once: compilewatch precompile, strategy {strategy.name}"
    settings = {
        option: value
        for option, value in strategy.options.items()
        if option.partition(".")[0] in ("dynamo", "functorch")
    }
    threads = strategy.options.get(_THREADS)
    before = [f"os.environ['TORCHINDUCTOR_COMPILE_THREADS'] = '{threads}'"] if threads is not None else []
    before += [
        f"torch.{'_dynamo' if option.startswith('dynamo.') else '_functorch'}.config."
        f"{option.partition('.')[2]} = {value!r}"
        for option, value in settings.items()
    ]
    if strategy.regions:
        parts = [
            f"{name}.get_submodule({path!r}).compile({_arguments(strategy.model_copy(update=own))})"
            for path, own in strategy.regions.items()
        ]
        return "; ".join([*before, *parts])
    if strategy.scope == "regional":
        line = f"[part.compile({_arguments(strategy)}) {_of_repeated(name, regions)}]"
    else:
        line = f"{name} = torch.compile({', '.join(filter(None, (name, _arguments(strategy))))})"
    return "; ".join([*before, line])


def _of_repeated(model: str, regions: Sequence[str]) -> str:
    """For each `part` that a trial compiles by itself (`repeated_blocks` of the worker's `compiling`)."""
    if regions:
        return f"for part in {model}.modules() if type(part).__name__ in {tuple(regions)!r}"
    return (
        f"for parts in {model}.modules() if isinstance(parts, (torch.nn.ModuleList, torch.nn.Sequential))"
        " for part in parts if [*map(type, parts)].count(type(part)) > 1 and any(part.children())"
    )


def _arguments(strategy: Strategy) -> str:
    """Of torch.compile, beside its defaults: "dynamic=True, options={'freezing': True}"."""
    options = {
        option: value
        for option, value in strategy.options.items()
        if option.partition(".")[0] not in ("dynamo", "functorch") and option != _THREADS
    }
    given = compile_arguments(strategy) | {"options": options}
    plain = {"backend": "inductor", "mode": "default", "options": {}}
    return ", ".join(f"{key}={value!r}" for key, value in given.items() if plain.get(key) != value)


def advice_lines(document: Mapping[str, Any]) -> list[str]:
    """What the answer rests on, what is ruled out and what is open."""
    return [line for part in (_look, _starts, _whole, _ruled_out, _open) for line in part(document)]


def look_range(document: Mapping[str, Any]) -> str | None:
    """The range of the speedup of `default` by the models that were known; None where too few were."""
    known = document["look"] and document["look"]["range"]
    return interval(known["low"], known["high"], ratio) if known else None


def _look(document: Mapping[str, Any]) -> Iterator[str]:
    """What was seen of it in eager alone."""
    look = document["look"]
    if look is None:
        return
    facts = [
        f"matrix products and convolutions take {percent(look['matrix_fraction'] or 0.0)} of its eager step"
    ]
    if look["busy_fraction"] is not None:
        facts.append(f"the GPU is busy {percent(look['busy_fraction'])} of it")
    if look["breaks"] is not None:
        facts.append(plural(look["breaks"], "graph break"))
    if (known := look_range(document)) is not None:
        facts.append(f"by the {plural(look['known'], 'model')} known here, default has a speedup of {known}")
    yield f"Looked at: {', '.join(facts)}."


def keep_lines(document: Mapping[str, Any]) -> list[str]:
    """Lines of a configuration that keep the choice measured."""
    return ["", "To keep it measured, in compilewatch.toml:", *document["configuration"]]


def ends(row: Mapping[str, Any]) -> str | None:
    """The interval of a candidate's gain; None for one that says nothing."""
    low, high = row["interval"] or (0.0, 0.0)
    return interval(low, high, ratio) if low and high / low < _TOO_WIDE else None


def named(document: Mapping[str, Any], candidate: str) -> Mapping[str, Any]:
    """The row of a candidate."""
    found: Mapping[str, Any] = next(row for row in document["candidates"] if row["candidate"] == candidate)
    return found


def answer(document: Mapping[str, Any]) -> Iterator[str]:
    """What to do, and by how much."""
    workload, choice = document["workload"], document["choice"]
    if document["broken"]:
        yield f"{workload}: nothing can be said, it fails whatever is done with it ({document['broken']})."
        return
    row = named(document, choice)
    if choice == EAGER.name:
        compiled = [each for each in document["candidates"] if each["gain"] and each["candidate"] != choice]
        looked = look_range(document)
        if compiled or looked is None:
            yield f"{workload}: {'stay eager' if compiled else 'nothing compiled was measured yet'}."
        else:
            yield f"{workload}: nothing compiled was measured; by its look default is {looked} eager."
        if compiled:
            best = max(compiled, key=lambda each: float(each["gain"]))
            standing = "worse" if best["stands"] == "worse" else "not shown to be better"
            yield f"The best compiled one, {best['candidate']}, is {standing}: {_gain(document, best)}."
        return
    batch = "" if row["batch_size"] == document["batch_size"] else f" at batch {count(row['batch_size'])}"
    so_far = "" if document["shown"] else "best so far: "
    yield f"{workload}{batch}: {so_far}{document['paste']}"
    shown = "Shown" if document["shown"] else f"Not shown yet, by {plural(row['trials'], 'trial')}"
    yield f"{shown}: {_gain(document, row)}."


def _gain(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    within = f", {known} with {_CONFIDENCE}" if (known := ends(row)) else ""
    return _GAIN[document["objective"]].format(ratio(row["gain"])) + within


def _starts(document: Mapping[str, Any]) -> Iterator[str]:
    if document["pays_off"]:
        yield document["pays_off"]
    figures = document["figures"]
    eager, cold, warm = (figures.get(name) for name in ("eager", "cold", "warm"))
    first = "first_result_ns"
    if eager and document["choice"] == EAGER.name:
        yield f"Its first result comes after {duration(eager[first])}."
        yield f"A step's peak memory is {size(eager['peak_bytes'])}."
    elif cold and eager:
        filled = f", {duration(warm[first])} from filled ones" if warm and warm[first] else ""
        yield (
            f"Its first result comes after {duration(cold[first])} from empty caches{filled}; "
            f"eager's after {duration(eager[first])}."
        )
        peaks = size(cold["peak_bytes"]), size(cold["control_peak_bytes"])
        yield f"A step's peak memory is {peaks[0]}, eager's {peaks[1]}."


def _whole(document: Mapping[str, Any]) -> Iterator[str]:
    facts = document["compiled"]
    if facts is None:
        return
    breaks, again = int(facts["graph_breaks"] or 0), int(facts["recompiles"] or 0)
    if breaks or again:
        what = " and ".join(
            plural(number, noun)
            for number, noun in ((breaks, "graph break"), (again, "recompilation"))
            if number
        )
        yield f"It does not compile whole: {what}; `compilewatch explain {document['workload']}` says where."
    else:
        numerics = facts["numerics_status"] or "not compared"
        yield f"It compiles whole, without a graph break; numerics: {numerics}."


def _ruled_out(document: Mapping[str, Any]) -> Iterator[str]:
    for row in document["candidates"]:
        if row["stands"] in ("worse", "wrong", "failed") and row["candidate"] != EAGER.name:
            yield f"Ruled out: {row['candidate']}: {row['why']}."
    for name, why in document["not_applicable"].items():
        yield f"Not tried: {name}: {why}."


def _open(document: Mapping[str, Any]) -> Iterator[str]:
    unmeasured = [row["candidate"] for row in document["candidates"] if row["stands"] == "not measured"]
    if unmeasured:
        yield f"There was no time for {', '.join(unmeasured)}."
    undecided: Sequence[Mapping[str, Any]] = [
        row for row in document["candidates"] if row["stands"] == "open"
    ]
    if undecided:
        yield f"Open: {', '.join(row['candidate'] for row in undecided)}. {document['one_more_hour']}"
    elif document["decided"]:
        yield "All is decided: no candidate can be better by more than 2 %."
