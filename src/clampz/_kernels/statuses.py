"""How kernels end that can be stopped, and how often they look; what else they return is from 2 on."""

DONE, STOPPED = 0, 1
# Steps of a search between two looks at the flag, less than a millisecond.
LOOK_EVERY = 1 << 14
