"""The words that pages use, a sentence each: the Guide lists them, a `?` beside a word shows its own."""

from __future__ import annotations

from compilewatch.db.units import capitalized

WORDS = {
    "workload": "A model or function with its inputs and task (inference, training, function), at one size.",
    "strategy": "How it is executed: eager, or compiled with a mode, such as default or max-autotune.",
    "+dynamic": "A strategy with dynamic shapes: one compilation serves inputs of several sizes.",
    "+warm": "A strategy that finds the compiler's caches filled by an earlier process.",
    "case": "A workload with a strategy.",
    "trial": "One fresh process that measured one case once.",
    "run": "One execution of a suite on one machine with one build: many trials.",
    "machine": "Hardware that must be the same before two numbers are compared.",
    "build": "The software stack that is compared: torch, CUDA, driver, Triton, cuDNN, Python, kernel.",
    "base and head": "The two builds of a comparison: every change is that of head against base.",
    "series": "The history of one case on one machine.",
    "sample": "The latency of one warm iteration.",
    "control": "The eager samples taken in alternation with the compiled ones, in the same process.",
    "canary": "Fixed work that shows what the machine can do, whatever is measured. Where it moved as much, "
    "the machine explains a change.",
    "noise floor": "The smallest change that five trials a side show in such cases on this machine.",
    "verdict": "What the judge says of a change: regressed, improved, unchanged (shown to be within the "
    "margin), inconclusive, not comparable, missing.",
    "suspected": "A change that the trials show and that fresh trials have not confirmed yet.",
    "q": "The p-value of a change, corrected for how many cases were judged at once.",
    "who moved": "Whose latency changed by more than its own noise: compiled, eager, both.",
    "triage state": "What people say of a recorded regression: new, confirmed, acknowledged (somebody owns "
    "it), expected, fixed, false alarm.",
}


def explained(*words: str) -> str:
    """The sentences on `words`, for a `?`."""
    return " ".join(f"{capitalized(word)}: {WORDS[word]}" for word in words)


def table() -> str:
    """All of them as a table in Markdown."""
    rows = "".join(f"| {word} | {meaning} |\n" for word, meaning in WORDS.items())
    return f"| word | meaning |\n|---|---|\n{rows}"
