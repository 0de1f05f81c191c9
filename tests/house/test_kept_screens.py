"""The pictures that are kept are of every page there is, wide and narrow, light and dark."""

from PIL import Image

from tests.e2e.kept_screens import KEPT, kept_names

# What a clone has to fetch for them.
MOST_BYTES = 6_000_000


def test_every_page_is_kept_and_nothing_else() -> None:
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(["README.md", *kept_names()])
    index = (KEPT / "README.md").read_text(encoding="utf-8")
    assert [name for name in kept_names() if f'src="{name}"' not in index] == []
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < MOST_BYTES


def test_pictures_have_the_width_that_their_names_tell() -> None:
    for name in kept_names():
        with Image.open(KEPT / name) as picture:
            assert f"-{picture.width}-" in name
