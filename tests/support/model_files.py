"""A model in each of the formats."""

UAI = """MARKOV
2
2 3
3
1 0
2 0 1
0

2
 1.0 0.5
6
 1 2 3
 4 0 6
1 2.0
"""

FG = """# two factors
2

1
0
2
2
0   1.0
1   0.5

2
1 0
3 2
3
# the first variable, here 1, varies fastest
0   1
5   2e0
1   3.5
"""

# A sprinkler: season, rain given season, sprinkler given season, wet given rain and sprinkler.
SPRINKLER = """BAYES
4
2 2 2 2
4
1 0
2 0 1
2 0 2
3 1 2 3
2 0.6 0.4
4 0.8 0.2 0.3 0.7
4 0.5 0.5 0.9 0.1
8 1 0 0.1 0.9 0.2 0.8 0.01 0.99
"""
