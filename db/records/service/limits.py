"""`[limits]`: how much may be planned at once, checked before anything is planned."""

from __future__ import annotations

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.service.requests import Positive, RequestSpec


class Limits(Closed):
    """`[limits]`: how much one run or request may ask for; more is refused before it is planned."""

    trials: Positive = 20_000
    cases: Positive = 2_000
    builds: Positive = 20
    sweeps: Positive = 500

    def require(self, what: str, count: int) -> None:
        """Raise ConfigError where `count` of `what`, a field's name, is more than its limit."""
        limit: int = getattr(self, what)
        if count > limit:
            raise ConfigError(
                f"This asks for {count:,} {what}; at most {limit:,} are planned at once.",
                f"Ask for less, or raise {what} of [limits].",
            )

    def require_request(self, spec: RequestSpec) -> None:
        """Raise ConfigError where what `spec` itself says goes beyond; the planner knows its suite."""
        cases = len(spec.cases) or len(spec.workloads) * len(spec.strategies)
        builds = len(spec.stacks or spec.builds)
        self.require("builds", builds)
        self.require("cases", cases)
        self.require("trials", (spec.trials or 1) * max(1, cases) * max(1, builds))
