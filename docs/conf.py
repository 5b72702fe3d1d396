"""How the site is made: `sphinx-build -W -b html docs docs/_build/html`.

The tutorials are run while it is built, on the package that is installed.  With CLAMPZ_DOCS=quick they are not, which
takes seconds where it took minutes; `tests/test_docs.py` runs their code as well.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import public_names  # noqa: E402 (an extension of this site)
from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

import clampz  # noqa: E402

project = "clampz"
author = "The clampz developers"
version = release = clampz.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "public_names",
    "signatures",
    "commands",
    "measured",
    "mathml",
]
exclude_patterns = ["_build", "_extensions", "_templates", "_ipython", "measured", "paper"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"clampz {version}"
html_static_path = ["_static"]
html_css_files = ["clampz.css"]
html_extra_path = ["paper"]  # the report, its table and its figures, beside the pages
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7db4f0", "color-brand-content": "#7db4f0"},
}
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: "
copybutton_prompt_is_regexp = True

# A name in single quotes that is public is a link, everything else is code.
default_role = "name"
nitpicky = True
# Types of other libraries: there is nothing here to link to.
nitpick_ignore_regex = [
    ("py:class", r"(np|numpy)\..*"),
    ("py:class", "Any|ArrayLike|Axes|Callable|Executor|Figure|Iterable|Iterator|NDArray|Path|PathLike|Self"),
]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
autodoc_class_signature = "mixed"
maximum_signature_line_length = 90
python_display_short_literal_types = True
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {name: f"clampz.{place}" for name, place in public_names.PUBLIC.items() if name[0].isupper()}
numpydoc_xref_ignore = "all"  # of other names
DEFAULT_LINKS.clear()  # to Python's own pages, which are elsewhere: without them `dict` is shown as python:dict

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_url_schemes = {"http": None, "https": None, "site": {"url": "{{path}}"}}

# Tutorials: what a kernel finds in its environment is what this build has.
quick = os.environ.get("CLAMPZ_DOCS") == "quick"
nb_execution_mode = "off" if quick else "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_merge_streams = True
nb_execution_excludepatterns = [f"tutorials/{name}*" for name in ("dimod", "pgmpy") if not find_spec(name)]
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["IPYTHONDIR"] = str(copytree(HERE / "_ipython", HERE / "_build" / "ipython", dirs_exist_ok=True))

public_names.write_pages(HERE / "api")
