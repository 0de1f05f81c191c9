"""Pure arithmetic on numbers and frames: what the measurements mean. No I/O, no judgement."""
