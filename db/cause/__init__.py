"""Why a step takes the time it takes: kernels by family, two profiles against each other, in words."""
