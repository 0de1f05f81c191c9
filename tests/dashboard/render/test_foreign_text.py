"""Foreign texts in sentences, on buttons and in charts."""

from __future__ import annotations

import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.dashboard.text.foreign_text import (
    LONGEST_LABEL,
    escaped,
    readable,
    readable_frame,
    readable_spec,
    shortened,
    unticked,
)

TURNING = "a\u202eb"


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_any_text_becomes_one_printable_line(text: str) -> None:
    line = readable(text)
    assert line.isprintable()
    assert readable(line) == line
    assert len(shortened(text)) <= LONGEST_LABEL


def test_what_is_readable_stays_as_it_is() -> None:
    assert readable("BERT-Größe 模型 🙂 (b8)") == "BERT-Größe 模型 🙂 (b8)"
    assert readable(f"one\n two\u2028three{TURNING}\x1b[31m") == r"one two threea\u202eb\x1b[31m"


def test_no_bare_address_is_left_for_markdown_to_link() -> None:
    text = escaped("see https://a.example/x, HTTP://b.example, www.c.example and d@e.example")
    for address in ("https\\://", "://", "www.", "@e"):
        assert address not in text.replace("\\", "")
    assert escaped("*a* [b](c)") == r"\*a\* \[b\]\(c\)"


def test_a_command_between_backticks_is_code_and_in_a_table_plain() -> None:
    text = "Not filed: `compilewatch gate --confirm run` files *it*, `rm` not."
    assert escaped(text) == r"Not filed\: `compilewatch gate --confirm run` files \*it\*, \`rm\` not."
    assert escaped("Take a smaller `batch_size`.") == "Take a smaller `batch_size`."
    assert unticked(text) == "Not filed: compilewatch gate --confirm run files *it*, `rm` not."


def test_names_like_icons_and_entities_stay_names() -> None:
    for text in (":material/bolt:", ":smile:", "a:+1:b"):
        assert escaped(text).replace("\\", "").replace("\u2060", "") == text
        assert re.search(r":[\w+-]+(/\w+)?:", escaped(text).replace("\\", "")) is None
    assert escaped("12:30 at a&amp;b") == r"12\:30 at a\&amp;b"


def test_charts_are_touched_only_where_something_is_unreadable() -> None:
    good = pd.DataFrame({"workload": pd.Series(["mlp", None], dtype="str"), "value": [1.0, 2.0]})
    assert readable_frame(good) is good
    bad = readable_frame(good.assign(workload=[TURNING, "mlp"]))
    assert list(bad["workload"]) == [r"a\u202eb", "mlp"]
    spec = {"sort": ["mlp", "default"], "layer": [{"title": "Speedup"}], "width": 3}
    assert readable_spec(spec) is spec
    assert readable_spec({"sort": ("mlp", TURNING)}) == {"sort": ["mlp", r"a\u202eb"]}
