"""Which row of a `benchmarks/dynamo` accuracy file speaks of which row of the performance file beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from db.interchange.fields import Fields, csv_header, csv_rows
from db.interchange.files import InputFile

_Key = tuple[Hashable, ...]
# A failed row is written without a tag: in a file with tags its speedup stands in their column.
_SHIFTED_SPEEDUP = "0.000000"


class Verdicts:
    """The rows of an accuracy file by what tells them apart in both files.

    That is device, model and tag, as far as both files have the column, and the batch size of models of which
    a file has several: PyTorch checks accuracy with a batch of its own, so one of each belong together.
    """

    def __init__(self, performance: InputFile | None, accuracy: InputFile) -> None:
        """Raises RecordError for a row that cannot be read."""
        shared = {*csv_header(accuracy)} & {*csv_header(performance)} if performance else set()
        self._columns = [name for name in ("dev", "name") if name in shared]
        self._tagged = "tag" in shared
        self._rows = [*csv_rows(accuracy)]
        self._several: set[_Key] = set()
        if performance and "batch_size" in shared:
            known = {*map(self._model, self._rows)}
            theirs = (row for row in csv_rows(performance) if self._model(row) in known)
            self._several = self._of_several(self._rows) | self._of_several(theirs)
        self._first: dict[_Key, Fields] = {}
        self._contrary: dict[_Key, Fields] = {}
        for row in self._rows:
            first = self._first.setdefault(self._key(row), row)
            if row.text("accuracy") != first.text("accuracy"):
                self._contrary.setdefault(self._key(row), row)
        self._spoken: set[_Key] = set()

    def of(self, row: Fields) -> Fields | None:
        """The row that speaks of this row of the performance file, and of every repeat of it.

        Raises RecordError where two do and differ.
        """
        key = self._key(row)
        first, contrary = self._first.get(key), self._contrary.get(key)
        if first is not None and contrary is not None:
            contrary.fail(
                "accuracy",
                f"says {contrary.text('accuracy')} of the row that line {first.place.line} calls "
                f"{first.text('accuracy')}",
            )
        self._spoken.add(key)
        return first

    def left(self) -> Iterator[Fields]:
        """Rows that spoke of none so far, in the order of the file."""
        return (row for row in self._rows if self._key(row) not in self._spoken)

    def _of_several(self, rows: Iterable[Fields]) -> set[_Key]:
        """Models with rows of more than one batch size."""
        sizes: dict[_Key, set[int]] = defaultdict(set)
        for row in rows:
            size = _batch_size(row)
            if size is not None:
                sizes[self._model(row)].add(size)
        return {model for model, found in sizes.items() if len(found) > 1}

    def _model(self, row: Fields) -> _Key:
        return (*map(row.text, self._columns), tag_of(row) if self._tagged else None)

    def _key(self, row: Fields) -> _Key:
        model = self._model(row)
        return (*model, _batch_size(row)) if model in self._several else model


def tag_of(row: Fields) -> str | None:
    """What the user called the run of this row, if the file says it."""
    tag = row.text("tag")
    return None if tag == _SHIFTED_SPEEDUP else tag


def _batch_size(row: Fields) -> int | None:
    """An empty batch size and the 0 of a failed row both mean that the file does not say it."""
    return row.count("batch_size") or None
