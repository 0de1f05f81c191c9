"""What `compilewatch advise` chooses in a quarter of the time that five trials of every candidate take:

    python -m tests.qa.benchmarks.advised_choice cnn encoder my_models:build --into choice
    python -m tests.qa.benchmarks.advised_choice --replay choice/every/compilewatch.db
    python -m tests.qa.benchmarks.looked_at sqlite:///choice/every/compilewatch.db

Both are measured one after the other, with databases of their own, and eager of each model is profiled at the
end. Regret is how much longer a step takes with the choice than with the best, by the five trials: by the
speedups, against eager in the same process, and by the latencies alone, which another load bends. "Shown
slower" is a choice whose interval there lies below 1. A replay races what is stored, trials in random order,
in the same quarter of the time; the best is then that of the median latencies.
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

import numpy as np
import pandas as pd

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.race import Race
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import interval, percent, ratio
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.selection import select
from compilewatch.runner.search.advice import Objective, raced_strategies, with_candidates

TRIALS = 5
REPLAYS = 200


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
    definition = _definition(model)
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


def replay(path: Path) -> None:
    """A row for each stored model: regret of 200 races by the pairs alone, and as `advise` races."""
    print("| model | best by latency | pairs alone: mean, at most 2 % | as it races: mean, at most 2 % |")
    print("|---|---|---|---|")
    with open_database(f"sqlite:///{path}", read_only=True) as database:
        trials = without_canaries(trials_frame(database))
    trials = trials[(trials["status"] == "ok") & (trials["strategy"] != EAGER.name)]
    for model, rows in trials.groupby("workload", sort=False):
        of = {str(name): each for name, each in rows.groupby("strategy") if len(each) == TRIALS}
        names = [
            name for name in raced_strategies(Objective.LATENCY, _definition(str(model)), "cpu") if name in of
        ]
        if not names:
            continue
        steps = {name: float(np.log(of[name]["latency_ns"]).median()) for name in names}
        steps[EAGER.name] = float(np.log(rows["control_latency_ns"]).median())
        best = min(steps, key=steps.__getitem__)
        cells = []
        for is_paired in (True, False):
            choices = [_raced(of, names, is_paired=is_paired, seed=seed) for seed in range(REPLAYS)]
            regrets = np.expm1([steps[choice] - steps[best] for choice in choices])
            cells.append(f"{percent(float(regrets.mean()))}, {np.mean(regrets <= 0.02):.2f}")
        print(f"| {model} ({len(names)}) | {best} | {' | '.join(cells)} |", flush=True)


def _definition(model: str) -> WorkloadDefinition:
    return select(Settings(), workloads=[model]).workloads[0]


def _raced(of: dict[str, pd.DataFrame], names: list[str], *, is_paired: bool, seed: int) -> str:
    """The choice of a race over the trials of each candidate in the order of a seed, after one of eager."""
    generator = np.random.default_rng(seed)
    took = {name: (of[name]["ended_at"] - of[name]["started_at"]).dt.total_seconds() for name in names}
    price = {name: float(each.median()) for name, each in took.items()}
    eager_s = min(price.values())
    left_s = 0.25 * TRIALS * (sum(price.values()) + eager_s) - eager_s
    orders = {name: generator.permutation(len(of[name])) for name in names}
    race = Race(names, Policy(), eager=EAGER.name)
    while (name := race.next_up(price, left_s)) is not None and race.trials(name) < TRIALS:
        trial = of[name].iloc[orders[name][race.trials(name)]]
        eager_ns = float(trial["control_latency_ns"])
        cost = math.log(float(trial["latency_ns"]) / eager_ns)
        race.note(name, cost, 0.0 if is_paired else math.log(eager_ns))
        left_s -= price[name]
    return race.choice()


def main() -> None:
    """A row for each model as it ends, and how many have a regret of at most 2 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--share", type=float, default=0.25, help="of the time of all trials")
    parser.add_argument("--into", type=Path, help="a folder that keeps all trials; unset, none is kept")
    parser.add_argument("--replay", type=Path, help="a database of all trials; nothing is measured")
    given = parser.parse_args()
    if given.replay is not None:
        replay(given.replay)
        return
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
