"""Solve a model by the method that suits it: the practical recommendations of [WD16], and the reasons for each choice.

Narrow models are solved exactly (`exact`).  On all others `bound` brackets log Z (`bracket`), and an estimate is
held inside the bracket (`estimates`): by draws from its upper bound where these have a small error by their own
account, and else Bethe as a rule, mean field where a mixed model is dense and strong.  Clamping improves both
(`clamps`), by pseudo-greedy if there is time for it and by maxW+TRE if not.  Where a number of clamps is asked for,
mean field and TRW with these clamps are the bracket.
"""
