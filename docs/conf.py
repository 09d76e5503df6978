"""How these pages are built: sphinx-build -W -b html docs docs/_build/html"""

import os
import re
import sys
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
(DOCS / "_generated" / "extra").mkdir(parents=True, exist_ok=True)
os.environ["HOLONOME_QUIET"] = "1"
os.environ.setdefault("MPLBACKEND", "agg")

import holonome  # noqa: E402

project, author, copyright = "holonome", "the authors of holonome", "the authors of holonome"  # noqa: A001
version = release = holonome.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "made_at_build",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

highlight_language = "none"
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = True

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
add_module_names = False
toc_object_entries_show_parents = "hide"


def house_style(gallery_conf, file):
    """Draw the pictures of the examples as ours."""
    from matplotlib import rcParams

    from holonome.plot.style import house_style

    with house_style(dark=False):
        ours = dict(rcParams)
    rcParams.update({key: value for key, value in ours.items() if key != "backend"})


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "capture_repr": (),
    "thumbnail_size": (640, 448),
    "reset_modules": ("matplotlib", house_style),
}

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "holonome"
html_static_path = ["_static"]
html_css_files = ["holonome.css"]
html_extra_path = ["_generated/extra"]
html_show_sourcelink = False
html_show_copyright = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = [
    "config.cache",
    "ref.python",
]  # a `drift` in one class is not a reference to that of another


def escape_bars(app, what, name, obj, options, lines):
    """``|g|`` in a docstring is an absolute value, not a substitution."""
    lines[:] = [
        "``".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(line.split("``")))
        if not line.lstrip().startswith((">>>", "..."))
        else line
        for line in lines
    ]


def join_names(app, what, name, obj, options, lines):
    """Attributes that share a description, "q, v", would be read as one, with "q," as its type."""
    lines[:] = [
        re.sub(r"^(\s*:(?:ivar|vartype) )([\w, ]+)(?=:)", lambda m: m[1] + m[2].replace(", ", ","), line)
        for line in lines
    ]


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-docstring", join_names, priority=900)
