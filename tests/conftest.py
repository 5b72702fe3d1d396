"""Settings of all tests: no deadlines, as the first call of a kernel compiles it, and the same examples in every
run."""

from hypothesis import settings

settings.register_profile("clampz", deadline=None, derandomize=True)
settings.load_profile("clampz")
