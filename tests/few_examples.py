"""For properties of which one example takes a tenth of a second: a quarter as many as of others."""

from __future__ import annotations

from hypothesis import settings

FEW = settings(max_examples=max(5, settings.default.max_examples // 4))
"""`make fuzz` and `make mutants` choose how many others have, and so of these too."""
