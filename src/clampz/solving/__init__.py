"""Solve a model by what suits it: the practical recommendations of [WD16], and the reasons for each choice.

`solve` is a goal of the portfolio: log Z between two bounds, and marginals (`SolveProblem`).  To the strategies of
`bound` come exact inference with all marginals, first marginals by mean field and Bethe, and clamping, by pseudo-greedy
if there is time for it and by maxW+TRE if not.  The estimate is held inside the bracket: by draws where these have a
small error by their own account, and else Bethe's as a rule, mean field's where a mixed model is dense and strong.
Where a number of clamps is asked for, mean field and TRW with these clamps are the bracket (`clamps`).
"""
