"""Links that the site makes from what a page already says.

- Inline code that is a public name (`PulseTransformer`, `plotting.DriftDisplay`, `windows`) links
  to its page of the reference. A name of a public room that does not exist is a warning.
- Inline code that is an example (`plot_har.py`) links to the gallery.
- A link to a file of the repository that the site shows as a page leads to this page.
"""

import importlib
import re
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from . import api

LOGGER = logging.getLogger(__name__)
# Pages of the site that show a file of the repository.
FILES = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "SECURITY.md": "security"}


def targets() -> dict[str, str]:
    """Return the page of each name that a text may use: whole, from the room on, or alone."""
    where = api.homes()
    rooms = [room for part in api.ROOMS.values() for room in part]
    found = {room: room for room in rooms}
    found |= {room.removeprefix("sklearn_pulse."): room for room in rooms}
    found |= where
    found |= {name.removeprefix("sklearn_pulse."): page for name, page in where.items()}
    own = [name for name, page in where.items() if name == page]
    last = [name.rpartition(".")[2] for name in own]
    alone = {name: page for name, page in zip(last, own, strict=True) if last.count(name) == 1}
    return {name: page for name, page in alone.items() if "_" in name or not name.islower()} | found


def link_names(app: Any, doctree: nodes.document, docname: str) -> None:
    """Turn inline code of a page that names a public object or an example into links."""
    for node in list(doctree.findall(nodes.literal)):
        if _is_linked(node):
            continue
        page = page_of(node.astext(), app.site_targets, docname)
        if page in app.env.found_docs and page != docname:
            text = node.deepcopy()
            link = make_refnode(app.builder, docname, page, "", text, node.astext())
            node.replace_self(link)


def _is_linked(node: nodes.Node | None) -> bool:
    """Whether a node is in a link or in a title already."""
    while node is not None:
        if isinstance(node, nodes.reference | nodes.title):
            return True
        node = node.parent
    return False


def page_of(text: str, names: dict[str, str], docname: str) -> str | None:
    """Return the page that inline code leads to; warn of a public name that does not exist."""
    example = re.fullmatch(r"(?:examples/)?(plot_\w+)\.py", text)
    if example:
        return f"gallery/{example[1]}"
    name = re.match(r"[\w.]*", text)[0].rstrip(".")
    if name != text and text[len(name)] != "(":  # not a name, nor a call of one
        return None
    if name in names:
        return f"api/{names[name]}"
    first, _, rest = name.partition(".")
    if first not in names or not rest or "." in rest or rest[0] == "_":
        return None
    if first[0].isupper() and hasattr(getattr(*_owner(names[first])), rest):
        return f"api/{names[first]}"
    if name == text and rest not in ("py", "md"):
        LOGGER.warning("%s names nothing public.", text, location=docname)
    return None


def _owner(full: str) -> tuple[Any, str]:
    """Return the room of a public name, and its name there."""
    room, _, name = full.rpartition(".")
    return importlib.import_module(room), name


def to_site(app: Any, docname: str, source: list[str]) -> None:
    """Let links to files of the repository lead to the pages that show them."""
    depth = len(PurePosixPath(docname).parts) - 1
    for file, page in FILES.items():
        here = "../" * depth + page + ".md"
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(file)}", f"]({here}", source[0])
