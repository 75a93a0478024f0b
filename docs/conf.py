"""Settings of the HTML documentation: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from dualfield import __version__

project = "dualfield"
author = "dualfield developers"
copyright = "dualfield developers"
release = version = __version__

extensions = [
    "mathml",
    "api_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

# Pages are Markdown; ```{math} blocks and $inline$ formulas go through mathml.py.
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# The docstrings are numpydoc; api_pages.py writes a page for each public name.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False

# Buttons copy code without prompts and outputs.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_here_doc_delimiter = "END"

# The scripts in examples/ are run and become pages in docs/gallery; those that have not changed are not run again.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "backreferences_dir": "gallery/mentions",
    "doc_module": ("dualfield",),
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": float("inf"),
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
}

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "gallery.css"]
html_title = f"dualfield {release}"
html_copy_source = False
html_show_sphinx = False
highlight_options = {"python": {"stripnl": True}}
pygments_style = "default"
pygments_dark_style = "monokai"
