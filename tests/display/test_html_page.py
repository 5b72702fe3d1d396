"""Pages: what they are made of."""

import pytest

from clampz.display import html_page


def test_texts_are_escaped_and_in_print():
    assert html_page.text('Bethe\'s <b> & "x"') == "Bethe’s &lt;b&gt; &amp; &quot;x&quot;"
    assert html_page.with_minus("-1.5 to -2 in [-6,6]") == "−1.5 to −2 in [-6,6]"
    assert html_page.sentence("mean field") == "Mean field"
    assert html_page.sentence("") == ""


def test_pictures_are_inside():
    assert html_page.data_url(b"\x89PNG and so on").startswith("data:image/png;base64,")
    assert html_page.data_url(b"<?xml version='1.0'?>").startswith("data:image/svg+xml;base64,")
    with pytest.raises(StopIteration):
        html_page.data_url(b"GIF89a")
