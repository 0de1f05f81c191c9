"""Where jobs are measured: on this machine, or by the workers of a fleet. One contract for both."""
