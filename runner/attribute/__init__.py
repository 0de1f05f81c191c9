"""Which component of a build carries a change: `compilewatch attribute`."""
