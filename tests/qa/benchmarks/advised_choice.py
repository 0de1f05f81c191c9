"""What `compilewatch advise` chooses in a quarter of the time that five trials of every candidate take:

    python -m tests.qa.benchmarks.advised_choice cnn encoder my_models:build --into choice
    python -m tests.qa.benchmarks.looked_at sqlite:///choice/every/compilewatch.db

Both are measured one after the other, with databases of their own, and eager of each model is profiled at the
end. Regret is how much longer a step takes with the choice than with the best, by the five trials: by the
speedups, against eager in the same process, and by the latencies alone, which another load bends. "Shown
slower" is a choice whose interval there lies below 1.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.units import interval, percent, ratio
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.selection import select
from compilewatch.runner.search.advice import Objective, raced_strategies, with_candidates

TRIALS = 5


def _entries(names: list[str]) -> str:
    """`[[strategy]]` of what advise races under names of its own."""
    lines = []
    for each in with_candidates(Settings(), names).strategy:
        options = ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in each.options.items())
        lines += ["[[strategy]]", f'name = "{each.name}"', f"options = {{ {options} }}"]
    return "\n".join(lines) + "\n"


def _typed(folder: Path, *arguments: str) -> tuple[str, float]:
    """Standard output of a command and its seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "compilewatch.runner", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not ended.stdout:
        raise SystemExit(ended.stderr)
    return ended.stdout, time.monotonic() - began


def measured(model: str, share: float, root: Path) -> dict[str, Any]:
    """All candidates of a model, the choice in `share` of their time, and its regret. Under `root` the trials
    of all models lie in every/compilewatch.db, and what `advise` said of this one in a folder of its name.
    """
    (definition,) = select(Settings(), workloads=[model]).workloads
    names = raced_strategies(Objective.LATENCY, definition, "cpu")
    every, advised = root / "every", root / definition.name
    for folder in (every, advised):
        folder.mkdir(parents=True, exist_ok=True)
    (every / "compilewatch.toml").write_text(_entries(names))
    strategies = [each for name in ("eager", *names) for each in ("-s", name)]
    _, seconds = _typed(every, "run", "-w", model, *strategies, "--trials", str(TRIALS), "--json")
    with open_database(f"sqlite:///{every / 'compilewatch.db'}") as database:
        cases = summarize_cases(without_canaries(trials_frame(database)))
    rows = {
        row["strategy"]: row
        for row in cases.to_dict("records")
        if row["status"] == "ok" and row["workload"] == definition.name
    }
    steps_ns = {name: float(row["latency_ns"]) for name, row in rows.items() if name in ("eager", *names)}
    speedups = {name: float(row["speedup"]) for name, row in rows.items() if name in names} | {"eager": 1.0}
    text, took = _typed(advised, "advise", model, "--minutes", f"{share * seconds / 60:.2f}", "--json")
    (advised / "advise.json").write_text(text)
    document = json.loads(text)
    _typed(every, "run", "-w", model, "-s", "eager", "--trials", "1", "--profile", "--json")
    best, choice = max(speedups, key=speedups.__getitem__), document["choice"]
    high = rows[choice]["speedup_high"] if choice in rows and choice != "eager" else math.nan
    return {
        "model": definition.name,
        "candidates": len(speedups) - 1,
        "every_s": seconds,
        "advise_s": took,
        "best": best,
        "of_best": speedups[best],
        "choice": choice,
        "of_choice": speedups[choice],
        "regret": speedups[best] / speedups[choice] - 1.0,
        "regret_of_latency": steps_ns[choice] / min(steps_ns.values()) - 1.0,
        "slower": high < 1.0,
        "shown": document["shown"],
        "trials": sum(row["trials"] for row in document["candidates"]),
        "ends": interval(rows[best]["speedup_low"], rows[best]["speedup_high"], ratio)
        if best in rows
        else "",
    }


def main() -> None:
    """A row for each model as it ends, and how many have a regret of at most 2 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--share", type=float, default=0.25, help="of the time of all trials")
    parser.add_argument("--into", type=Path, help="a folder that keeps all trials; unset, none is kept")
    given = parser.parse_args()
    print("| model | all: s | advise: s | best of all | choice | regret | by latency | shown slower |")
    print("|---|---:|---:|---|---|---:|---:|---|")
    rows = []
    root = (given.into or Path(tempfile.mkdtemp())).resolve()
    for model in given.models:
        row = measured(model, given.share, root)
        rows.append(row)
        best = f"{row['best']} {ratio(row['of_best'])} {row['ends']}"
        choice = f"{row['choice']} {ratio(row['of_choice'])}{'' if row['shown'] else ', not shown'}"
        times = f"{row['every_s']:.0f} | {row['advise_s']:.0f}, {row['trials']} trials"
        regrets = " | ".join(percent(row[name]) for name in ("regret", "regret_of_latency"))
        said = f"{regrets} | {'**yes**' if row['slower'] else 'no'}"
        print(f"| {row['model']} ({row['candidates']}) | {times} | {best} | {choice} | {said} |", flush=True)
    within = f"{sum(row['regret'] <= 0.02 for row in rows)} of {len(rows)}"
    print(f"\nRegret at most 2 %: {within}; median {percent(statistics.median(r['regret'] for r in rows))}.")


if __name__ == "__main__":
    main()
