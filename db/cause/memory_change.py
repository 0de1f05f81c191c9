"""What memory is held for, and what came and went between two sides, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compilewatch.db.records.evidence import HeldMemory, Memory, SavedForBackward
from compilewatch.db.units import count, plural, size

NAMED = 3
"""So many that came, and that went, stand in a sentence at most."""
LISTED = 10

_Key = tuple[str | None, str | None]


@dataclass(frozen=True)
class HeldChange:
    """Tensors of one shape and place, or blocks of one place, on both sides."""

    tensor: str | None
    place: str | None
    before: int
    after: int
    before_bytes: int
    after_bytes: int

    @property
    def delta_bytes(self) -> int:
        """Positive where more is held now."""
        return self.after_bytes - self.before_bytes


def on_both_sides(base: Sequence[HeldMemory], head: Sequence[HeldMemory]) -> list[HeldChange]:
    """What either side holds, the largest difference first, then the largest. Tensors of one shape that each
    side has from another line are the same.
    """
    before, after = _counted(base), _counted(head)
    for key in list(before):
        for other in [other for other in after if other != key and other[0] == key[0] is not None]:
            # As many as are left over on both sides stand for each other.
            (here, _), (there, _) = before[key], after.get(key, (0, 0))
            moved = min(here - there, after[other][0] - before.get(other, (0, 0))[0])
            if moved > 0:
                number, size_bytes = after[other]
                part = size_bytes * moved // number
                after[other] = number - moved, size_bytes - part
                after[key] = there + moved, after.get(key, (0, 0))[1] + part
    changes = [
        HeldChange(*key, before_count, after_count, before_bytes, after_bytes)
        for key in dict.fromkeys((*before, *after))
        for (before_count, before_bytes), (after_count, after_bytes) in [
            (before.get(key, (0, 0)), after.get(key, (0, 0)))
        ]
        if before_bytes or after_bytes
    ]
    return sorted(changes, key=_largest_first)


def _largest_first(change: HeldChange) -> tuple[int, int, str, str]:
    return -abs(change.delta_bytes), -change.after_bytes, change.tensor or "", change.place or ""


def _counted(held: Sequence[HeldMemory]) -> dict[_Key, tuple[int, int]]:
    """How many and how many bytes, by tensor and place."""
    found: dict[_Key, tuple[int, int]] = {}
    for each in held:
        number, size_bytes = found.get((each.tensor, each.place), (0, 0))
        found[each.tensor, each.place] = number + each.count, size_bytes + each.size_bytes
    return found


def memory_sentences(base: Memory, head: Memory) -> Iterator[str]:
    """Why a peak moved, as far as both sides know what they hold; nothing where that is the same."""
    if base.saved is not None and head.saved is not None:
        before, after = base.saved, head.saved
        if changes := _moved(before.largest, after.largest):
            eager = f" (eager: {saved_text(head.control_saved)})" if head.control_saved else ""
            yield (
                f"Saved for backward: {saved_text(before)} became {saved_text(after)}{eager}; "
                f"{'; '.join(_parts(changes))}."
            )
    if base.peak_blocks and head.peak_blocks and (changes := _moved(base.peak_blocks, head.peak_blocks)):
        yield f"Blocks at the peak: {'; '.join(_parts(changes))}."


def _moved(base: Sequence[HeldMemory], head: Sequence[HeldMemory]) -> list[HeldChange]:
    return [each for each in on_both_sides(base, head) if each.delta_bytes]


def _parts(changes: Sequence[HeldChange]) -> Iterator[str]:
    """ "went: 3 x 512x1024 float32 at model.py:12 (6.29 MB)" """
    for verb, sign in (("came", 1), ("went", -1)):
        mine = [each for each in changes if each.delta_bytes * sign > 0]
        if mine:
            shown = ", ".join(_difference(each) for each in mine[:NAMED])
            rest = sum(abs(each.delta_bytes) for each in mine[NAMED:])
            yield f"{verb}: {shown}{f' and {size(rest)} more' if rest else ''}"


def _difference(change: HeldChange) -> str:
    number = abs(change.after - change.before)
    return f"{named(change.tensor, change.place, number)} ({size(abs(change.delta_bytes))})"


def named(tensor: str | None, place: str | None, number: int) -> str:
    """ "3 x 512x1024 float32 at model.py:12", "2 blocks at model.py:12" """
    many = f"{count(number)} x " if number > 1 else ""
    what = plural(max(1, number), "block") if tensor is None else f"{many}{tensor}"
    return f"{what} at {place}" if place else what


def saved_text(saved: SavedForBackward) -> str:
    """ "21 tensors, 17.3 MB" """
    return f"{plural(saved.count, 'tensor')}, {size(saved.size_bytes)}"


def held_texts(memory: Memory) -> list[tuple[str, str]]:
    """Name and text of what memory is held for: of both sides how much is saved, then the largest."""
    facts = []
    if memory.saved is not None:
        eager = f" (eager {saved_text(memory.control_saved)})" if memory.control_saved else ""
        facts.append(("saved for backward", f"{saved_text(memory.saved)}{eager}"))
        facts += _largest(memory.saved.largest)
    if memory.peak_blocks:
        facts.append(("blocks at the peak", "the largest"))
        facts += _largest(memory.peak_blocks)
    return facts


def _largest(held: Sequence[HeldMemory]) -> list[tuple[str, str]]:
    shown = [(each.size_bytes, named(each.tensor, each.place, each.count)) for each in held[:LISTED]]
    if rest := held[LISTED:]:
        shown.append((sum(each.size_bytes for each in rest), "in smaller ones"))
    return [(f"  {size(size_bytes)}", text) for size_bytes, text in shown]
