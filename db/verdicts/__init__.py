"""The one judge: what changed, is it real, who moved. Numbers in, frozen objects out; no I/O."""
