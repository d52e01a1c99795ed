"""Sphinx's settings: `make docs` and `make docs-check`."""

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from docs._generate import api, examples, links, offline, tables  # noqa: E402
from sklearn_pulse import __version__  # noqa: E402

project = "sklearn_pulse"
author = copyright = "the sklearn_pulse developers"
version = release = __version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = [
    "_generate",
    "_written",
    "gallery/*.ipynb",
    "gallery/*.py",
]

# Names of other packages stay plain: an inventory of them would have to be downloaded.
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|torch|matplotlib|skorch|numpy|sktime|pandas)\..*")]
default_role = "literal"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # numpydoc's sections state the types
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": examples.pattern(ROOT / "examples"),
    "ignore_pattern": r"reproduce",
    "nested_sections": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "doc_module": ("sklearn_pulse",),
    "backreferences_dir": "_written/backreferences",
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
    "write_computation_times": False,  # its page loads scripts from the network
}

html_theme = "pydata_sphinx_theme"
toc_object_entries_show_parents = "hide"
html_title = "sklearn_pulse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
linkcheck_ignore = [r"https?://.*"]  # links within the site alone; the site is built offline


def write_pages(app: Any) -> None:
    """Write the pages and figures that come from the package and from measurements."""
    api.write(HERE / "api")
    tables.write(HERE / "_written")
    app.site_targets = links.targets()


def check_offline(app: Any, exception: Exception | None) -> None:
    """Refuse a site that loads something from the network."""
    if exception is None and app.builder.name == "html":
        found = offline.loads_from_network(Path(app.outdir))
        if found:
            raise RuntimeError(f"These files load something from the network: {found[:10]}.")


def setup(app: Any) -> None:
    """Connect what this project adds to Sphinx."""
    os.chdir(ROOT)  # examples write their pictures into output/
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("source-read", links.to_site)
    app.connect("build-finished", check_offline)
    app.connect("doctree-resolved", links.link_names)
