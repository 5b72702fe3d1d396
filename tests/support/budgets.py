"""Budgets that tests share."""

from clampz.runtime.budget import Budget


class Asked(Budget):
    """Says stop at question number `most`."""

    def __init__(self, most):
        super().__init__()
        self.most, self.asked = most, 0

    def must_stop(self):
        self.asked += 1
        if self.asked >= self.most:
            self.stopped_by = "interrupt"
        return super().must_stop()
