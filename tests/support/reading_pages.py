"""Pages as tests read them."""

import re
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    """Collects what tests ask about, and refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.open, self.ids, self.links, self.images, self.tags, self.words = [], [], [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def check(self):
        """That nothing comes from elsewhere, links and labels lead somewhere, and parts are what they are called."""
        for tag, attributes in self.tags:
            assert tag not in ("script", "iframe", "object", "embed", "base", "form", "video", "audio")
            for name, value in attributes.items():
                assert not name.startswith("on")
                if name in ("src", "href", "srcset", "action", "poster", "data", "background"):
                    assert value.startswith(("data:", "#"))
        assert not re.search(r"https?:|//[a-z]|@import|url\(", re.sub(r"base64,[A-Za-z0-9+/=]+", "", self.source))
        assert len(self.ids) == len(set(self.ids))
        assert self.links and {link.removeprefix("#") for link in self.links} <= set(self.ids)
        for attributes in (given for _, given in self.tags if "aria-labelledby" in given):
            assert attributes["aria-labelledby"] in self.ids
        tags = [tag for tag, _ in self.tags]
        for tag in ("main", "header", "nav", "footer", "h1"):
            assert tag in tags
        assert tags.count("h1") == tags.count("main") == 1
        assert dict(next(given for tag, given in self.tags if tag == "html"))["lang"] == "en"
        assert any(given.get("name") == "viewport" for tag, given in self.tags if tag == "meta")
        assert all("scope" in given for tag, given in self.tags if tag == "th")
        levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
        assert all(given["alt"] for given in self.images)
