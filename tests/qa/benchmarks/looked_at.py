"""How far the range that a look gives holds for models that are known, each left out once:

    compilewatch run --suite standard -s default --profile --trials 3 --db sqlite:///looked.db
    python -m tests.qa.benchmarks.looked_at sqlite:///looked.db

The error is that of the middle of the range, as a factor; beside it that of the geometric mean of the others.
"""

from __future__ import annotations

import sys
from math import exp, log
from statistics import fmean, median

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.run_parts import measured_machines
from compilewatch.db.units import percent, ratio
from compilewatch.runner.search.advice import cases_of_machine, profiled_models, screened


def main(url: str) -> None:
    """A row for each model of each machine that has enough of them."""
    with open_database(url) as database:
        for machine in measured_machines(database):
            cases = cases_of_machine(database, machine)
            profiled = profiled_models(database, machine, cases)
            speedups = {
                row["workload"]: float(row["speedup"]) for row in cases if row["strategy"] == "default"
            }
            looks = screened(profiled, cases, dict.fromkeys(speedups, lambda: None))
            rows = [(name, speedups[name], look) for name, look in looks.items() if look.range is not None]
            print(f"{machine}: {len(rows)} models")
            print("| model | matrix products | speedup | range | holds |\n|---|---:|---:|---|---|")
            errors, plain = [], []
            for name, speedup, look in rows:
                low, middle, high = look.range or (1.0, 1.0, 1.0)
                others = [log(each) for other, each, _ in rows if other != name]
                errors.append(abs(log(speedup / middle)))
                plain.append(abs(log(speedup) - fmean(others)))
                share, held = percent(look.matrix_fraction or 0.0), low <= speedup <= high
                ends = f"{ratio(low)} to {ratio(high)}"
                print(f"| {name} | {share} | {ratio(speedup)} | {ends} | {'yes' if held else '**no**'} |")
            if rows:
                print(
                    f"Error, median: {ratio(exp(median(errors)))}; of the mean: {ratio(exp(median(plain)))}."
                )


if __name__ == "__main__":
    main(sys.argv[1])
