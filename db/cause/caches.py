"""What a job asked the compiler's caches, host by host, and by what two hosts differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilewatch.db.records.evidence import CacheCounters, CacheKeys, CacheLookup, CompilerFacts
from compilewatch.db.units import count, duration, percent, plural

_NOT_SET = "not set"
_NAMES = {"fx_graph": "FX graphs", "aotautograd": "AOTAutograd", "triton": "Triton"}
_GRAPHS = "fx_graph"
"""The cache whose seconds count: AOTAutograd's contain them."""
# Facts of the surroundings in the order in which they are looked at, and what they are called.
_SURROUNDINGS = {
    "torch": "torch build",
    "CUDA": "CUDA",
    "ROCm": "ROCm",
    "Triton": "Triton",
    "device": "device",
    "compute capability": "compute capability",
    "architecture": "architecture",
    "CPU capability": "CPU capability",
    "compiler": "compiler",
    "Python": "Python",
    "threads": "threads",
    "matmul precision": "matmul precision",
}
_SETTINGS = {
    "torch_version": "torch build",
    "system_info[device]": "device",
    "system_info[version]": "CUDA and Triton",
}
_OF_GRAPHS = ("aot_config", "fx_kwargs")
"""Settings that follow from the graph and its inputs as well."""
_OPTIONS = ("inductor_config", "inductor_config_comms", "autograd_config", "fx_kwargs")


@dataclass(frozen=True)
class Difference:
    """The first component by which two processes differ, and what it is to each."""

    component: str
    one: str
    other: str


@dataclass
class HostCaches:
    """The processes of a job on one host: what their caches answered. Times are ns."""

    host: str
    processes: int = 0
    hits: int = 0
    misses: int = 0
    bypasses: int = 0
    saved_ns: int = 0
    lost_ns: int = 0
    keys: list[CacheKeys] = field(default_factory=list)

    @property
    def hit_rate(self) -> float | None:
        """Graphs that came from a cache over all; None without any."""
        lookups = self.hits + self.misses + self.bypasses
        return self.hits / lookups if lookups else None

    def add(self, facts: CompilerFacts) -> None:
        """One process. What AOTAutograd's cache has not, that of FX graphs is asked for."""
        caches = facts.cache or CacheCounters()
        self.processes += 1
        self.hits += (caches.fx_graph_hits or 0) + (caches.aot_autograd_hits or 0)
        self.misses += caches.fx_graph_misses or 0
        self.bypasses += caches.fx_graph_bypasses or 0
        if facts.cache_keys is not None:
            self.keys.append(facts.cache_keys)
            self.saved_ns += _seconds_of("saved_ns", facts.cache_keys)
            self.lost_ns += _seconds_of("took_ns", facts.cache_keys)


def hosts_of(processes: Iterable[tuple[str, CompilerFacts]]) -> list[HostCaches]:
    """The hosts of a run by name, from each process's host and what its compiler did."""
    hosts: dict[str, HostCaches] = {}
    for host, facts in processes:
        hosts.setdefault(host, HostCaches(host)).add(facts)
    return [hosts[name] for name in sorted(hosts)]


def reference_of(hosts: Sequence[HostCaches]) -> HostCaches | None:
    """The host that others are compared with: the one whose caches had most; None where no keys are known."""
    known = [each for each in hosts if each.keys]
    return max(known, key=lambda each: (each.hit_rate or 0.0, each.saved_ns), default=None)


def host_sentence(host: HostCaches, reference: HostCaches | None) -> str | None:
    """By what `host` differs from `reference`, or that it does not and missed all the same; None where
    nothing is known, and for the reference itself.
    """
    if reference is None or host is reference or not host.keys:
        return None
    found = first_difference(host.keys[0], reference.keys[0])
    if found is not None:
        return f"{found.component} {found.one}, on {reference.host} {found.other}."
    missed = len(_missed(host.keys[0]) & _found(reference.keys[0]))
    if missed:
        return f"The keys of {reference.host}, of which {plural(missed, 'entry')} was not in its caches."
    return f"No difference from {reference.host}."


def first_difference(one: CacheKeys, other: CacheKeys) -> Difference | None:
    """The first component of the keys, and of what compiled code depends on beside them, that differs."""
    return next(_differences(one, other), None)


def _differences(one: CacheKeys, other: CacheKeys) -> Iterator[Difference]:
    stated = one.surroundings.keys() | other.surroundings.keys()
    for name in (*_SURROUNDINGS, *sorted(stated - _SURROUNDINGS.keys())):
        facts = [each.surroundings.get(name, _NOT_SET) for each in (one, other)]
        if facts[0] != facts[1]:
            yield Difference(_SURROUNDINGS.get(name, name), *facts)
    of_graphs = []
    for each in _settings(one, other):
        if each[0].startswith(_OF_GRAPHS):
            of_graphs.append(each)
        else:
            yield _setting(*each)
    for mine, its in _pairs(one, other):
        if None not in (mine.source, its.source) and mine.source != its.source:
            what = f" of {mine.what}" if mine.what else ""
            yield Difference(f"source{what}", str(mine.source), str(its.source))
        if None not in (mine.inputs, its.inputs) and mine.inputs != its.inputs:
            tensors = [mine.tensors or _NOT_SET, its.tensors or _NOT_SET]
            hashes = [str(mine.inputs), str(its.inputs)]
            yield Difference("inputs", *(hashes if tensors[0] == tensors[1] else tensors))
        for name in sorted(mine.settings.keys() | its.settings.keys(), key=_rank):
            here = mine.settings.get(name, one.settings.get(name))
            there = its.settings.get(name, other.settings.get(name))
            if _hash(here) != _hash(there):
                yield _setting(name, here, there)
    for each in of_graphs:
        yield _setting(*each)


def _settings(one: CacheKeys, other: CacheKeys) -> Iterator[tuple[str, str | None, str | None]]:
    """What differs of the settings that the first lookups had; what one of two has not is no difference
    where it asked other caches.
    """
    alike = _caches(one).keys() == _caches(other).keys()
    for name in sorted(one.settings.keys() | other.settings.keys(), key=_rank):
        here, there = one.settings.get(name), other.settings.get(name)
        if _hash(here) != _hash(there) and (alike or (here is not None and there is not None)):
            yield name, here, there


def _rank(name: str) -> tuple[bool, bool, str]:
    return name not in _SETTINGS, not name.startswith(_OPTIONS), name


def _setting(name: str, one: str | None, other: str | None) -> Difference:
    part, _, option = name.rstrip("]").partition("[")
    called = _SETTINGS.get(name) or (f"option {option}" if option and part in _OPTIONS else f"option {name}")
    texts = [_said(one), _said(other)]
    return Difference(called, *([str(one), str(other)] if texts[0] == texts[1] else texts))


def _hash(value: str | None) -> str | None:
    """That of a setting, whose text may name an address of the process's memory."""
    return value and value.partition(" ")[0]


def _said(value: str | None) -> str:
    """The text of a setting, which is "HASH TEXT"; its hash where it has none."""
    return _NOT_SET if value is None else value.partition(" ")[2] or value


def _pairs(one: CacheKeys, other: CacheKeys) -> Iterator[tuple[CacheLookup, CacheLookup]]:
    """The lookups of both that came at the same place among those of their cache."""
    mine, its = _caches(one), _caches(other)
    for cache, lookups in mine.items():
        yield from zip(lookups, its.get(cache, ()), strict=False)


def _caches(keys: CacheKeys) -> dict[str, list[CacheLookup]]:
    caches: dict[str, list[CacheLookup]] = defaultdict(list)
    for each in keys.lookups:
        caches[each.cache].append(each)
    return dict(caches)


def _missed(keys: CacheKeys) -> set[str | None]:
    return {each.key for each in keys.lookups if each.answer == "miss"} - {None}


def _found(keys: CacheKeys) -> set[str | None]:
    return {each.key for each in keys.lookups if each.answer == "hit"} - {None}


def _seconds_of(figure: str, keys: CacheKeys) -> int:
    return sum(getattr(each, figure) or 0 for each in keys.lookups if each.cache == _GRAPHS)


def lookups_sentence(keys: CacheKeys) -> str:
    """How many lookups each cache answered with what, and what that saved and cost."""
    caches = [
        f"{_NAMES.get(cache, cache)} {count(_with('hit', lookups))} of {plural(len(lookups), 'lookup')} hit"
        for cache, lookups in _caches(keys).items()
    ]
    saved_ns, lost_ns = _seconds_of("saved_ns", keys), _seconds_of("took_ns", keys)
    seconds = [f"hits saved {duration(saved_ns)}"] if saved_ns else []
    seconds += [f"misses cost {duration(lost_ns)}"] if lost_ns else []
    return "; ".join([", ".join(caches), *seconds]) + "."


def _with(answer: str, lookups: Iterable[CacheLookup]) -> int:
    return sum(each.answer == answer for each in lookups)


def lookup_rows(keys: CacheKeys) -> list[dict[str, Any]]:
    """A row for each lookup: which cache, its answer, for what, seconds saved or lost, why not, the key."""
    return [
        {
            "cache": _NAMES.get(each.cache, each.cache),
            "answer": each.answer,
            "what": each.what,
            "tensors": each.tensors,
            "saved": each.saved_ns if each.answer == "hit" else None,
            "lost": each.took_ns if each.answer != "hit" else None,
            "reason": each.reason,
            "key": each.key,
        }
        for each in keys.lookups
    ]


def lookup_texts(keys: CacheKeys) -> list[tuple[str, str]]:
    """The sentence, and a line for each lookup that was no hit."""
    lines = [("cache lookups", lookups_sentence(keys))]
    for each in keys.lookups:
        if each.answer != "hit":
            of = f" of {each.what}" if each.what else ""
            cost = f", {duration(each.took_ns)}" if each.took_ns else ""
            why = each.reason or each.key
            text = f"{_NAMES.get(each.cache, each.cache)}{of}{cost}" + (f": {why}" if why else "")
            lines.append((f"  {each.answer}", text))
    return lines


def host_rows(hosts: Sequence[HostCaches]) -> list[dict[str, Any]]:
    """A row for each host, and by what it differs from the one whose caches had most."""
    reference = reference_of(hosts)
    return [
        {
            "host": each.host,
            "processes": each.processes,
            "hits": each.hits,
            "misses": each.misses,
            "bypasses": each.bypasses,
            "hit_rate": each.hit_rate,
            "saved": each.saved_ns or None,
            "lost": each.lost_ns or None,
            "differs": host_sentence(each, reference),
        }
        for each in hosts
    ]


def host_texts(hosts: Sequence[HostCaches]) -> list[str]:
    """The same as sentences."""
    lines = []
    for row in host_rows(hosts):
        rate = "no graph asked for" if row["hit_rate"] is None else f"hit rate {percent(row['hit_rate'])}"
        seconds = [f"saved {duration(row['saved'])}"] if row["saved"] else []
        seconds += [f"lost {duration(row['lost'])}"] if row["lost"] else []
        tally = ", ".join(
            [plural(row["hits"], "hit"), plural(row["misses"], "miss"), plural(row["bypasses"], "bypass")]
        )
        text = f"{row['host']}: {rate} ({tally}" + "".join(f"; {each}" for each in seconds) + ")"
        lines.append(text + (f". {row['differs']}" if row["differs"] else "."))
    return lines
