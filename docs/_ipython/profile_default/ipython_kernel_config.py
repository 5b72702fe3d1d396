"""Pictures of the tutorials: sharp on any screen, and with a paper of their own, so that they read on a dark page."""

c = get_config()  # noqa: F821 (IPython's)
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {"figure.facecolor": "white", "figure.dpi": 96, "svg.fonttype": "path"}
