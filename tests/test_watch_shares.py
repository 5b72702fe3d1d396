"""One clock: shares of a watch end with it."""

import math

from clampz.watch import Watch


def test_a_share_lasts_no_longer_than_the_whole():
    whole = Watch(100.0)
    half = whole.share(0.5)
    assert 0.0 < half.left() <= 50.0 < whole.left() <= 100.0
    assert half.left(0.5) <= 25.0
    assert whole.share(most=3.0).left() <= 3.0
    assert Watch().left() == math.inf


def test_a_share_stops_when_the_whole_does_and_not_the_other_way():
    whole = Watch(100.0)
    share = whole.share()
    share.stopped_by = "callback"
    assert share.must_stop() and share.left() == 0.0 and not whole.must_stop()
    other = whole.share().share()
    whole.stopped_by = "interrupt"
    assert other.must_stop() and other.stopped_by == "interrupt" and other.left() == 0.0


def test_no_time():
    watch = Watch(0.0)
    assert watch.must_stop() and watch.stopped_by == "time"


def test_the_caller_is_asked():
    over = False
    watch = Watch(stop=lambda: over)
    share = watch.share()
    assert not share.must_stop()
    over = True
    assert share.must_stop() and share.stopped_by == "interrupt" and watch.stopped_by == "interrupt"
