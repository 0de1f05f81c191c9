"""What came and went between two sides, by hand."""

from __future__ import annotations

from compilewatch.db.cause.memory_change import held_texts, memory_sentences, on_both_sides
from compilewatch.db.records.evidence import HeldMemory, Memory, SavedForBackward

KIB = 1024
BIG, SMALL = "512x1024 float32", "512x256 float32"


def held(tensor: str | None, place: str | None, size_bytes: int, count: int = 1) -> HeldMemory:
    return HeldMemory(tensor=tensor, place=place, count=count, size_bytes=size_bytes)


def memory(*each: HeldMemory, eager: SavedForBackward | None = None) -> Memory:
    return Memory(saved=saved(*each), control_saved=eager)


def saved(*each: HeldMemory) -> SavedForBackward:
    return SavedForBackward(
        count=sum(one.count for one in each), size_bytes=sum(one.size_bytes for one in each), largest=[*each]
    )


def test_what_came_and_what_went_by_size_and_place() -> None:
    base = memory(held(BIG, "m.py:3", 4 * KIB, 2), held(SMALL, "m.py:4", KIB))
    head = memory(
        held(BIG, "m.py:3", 2 * KIB), held("8 bool", "m.py:5", 8), eager=saved(held(BIG, None, KIB))
    )
    assert list(memory_sentences(base, head)) == [
        "Saved for backward: 3 tensors, 5.00 KiB became 2 tensors, 2.01 KiB (eager: 1 tensor, 1.00 KiB); "
        "came: 8 bool at m.py:5 (8 B); "
        f"went: {BIG} at m.py:3 (2.00 KiB), {SMALL} at m.py:4 (1.00 KiB)."
    ]


def test_a_tensor_from_another_line_is_the_same_tensor() -> None:
    base = [held(BIG, "m.py:3", 4 * KIB, 2)]
    head = [held(BIG, "m.py:7", 2 * KIB), held(BIG, None, 6 * KIB, 3)]
    changes = on_both_sides(base, head)
    assert [(each.place, each.before, each.after, each.delta_bytes) for each in changes] == [
        (None, 0, 2, 4 * KIB),
        ("m.py:3", 2, 2, 0),
    ]
    assert not list(memory_sentences(memory(*base), memory(held(BIG, "m.py:9", 4 * KIB, 2))))


def test_nothing_is_said_of_what_a_side_does_not_know() -> None:
    assert not list(memory_sentences(Memory(), memory(held(BIG, None, KIB))))
    assert held_texts(Memory()) == []


def test_blocks_of_a_gpu_have_no_tensor() -> None:
    base = Memory(peak_blocks=[held(None, "m.py:3", 2 * KIB, 2)])
    head = Memory(peak_blocks=[held(None, "m.py:3", 2 * KIB, 2), held(None, "m.py:4", KIB)])
    assert list(memory_sentences(base, head)) == ["Blocks at the peak: came: 1 block at m.py:4 (1.00 KiB)."]
    assert held_texts(base) == [("blocks at the peak", "the largest"), ("  2.00 KiB", "2 blocks at m.py:3")]


def test_of_many_the_rest_is_summed_up() -> None:
    many = [held(f"{number} float32", "m.py:1", KIB) for number in range(12)]
    texts = held_texts(memory(*many))
    assert (texts[0], texts[-1]) == (
        ("saved for backward", "12 tensors, 12.0 KiB"),
        ("  2.00 KiB", "in smaller ones"),
    )
    (sentence,) = memory_sentences(memory(), memory(*many))
    assert sentence.endswith("and 9.00 KiB more.")
