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
from sphinx.transforms.post_transforms import SphinxPostTransform
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
    last = [name.rsplit(".", 1)[1] for name in where if where[name] == name]
    alone = {name for name in last if last.count(name) == 1 and not name.islower()}
    return {
        name.rsplit(".", 1)[1]: page
        for name, page in where.items()
        if name.rsplit(".", 1)[1] in alone
    } | found


class LinkNames(SphinxPostTransform):
    """Turn inline code that names a public object or an example into a link."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Link the names of one page."""
        names = self.app.site_targets  # type: ignore[attr-defined]
        for node in list(self.document.findall(nodes.literal)):
            if isinstance(node.parent, nodes.reference | nodes.title) or self._in_reference(node):
                continue
            page = self._page(node.astext(), names)
            if page is not None and page != self.env.docname:
                link = make_refnode(
                    self.app.builder, self.env.docname, page, "", node.deepcopy(), node.astext()
                )
                node.replace_self(link)

    def _in_reference(self, node: nodes.Node) -> bool:
        parent = node.parent
        while parent is not None:
            if isinstance(parent, nodes.reference) or parent.tagname in ("pending_xref", "toctree"):
                return True
            parent = parent.parent
        return False

    def _page(self, text: str, names: dict[str, str]) -> str | None:
        example = re.fullmatch(r"(?:examples/)?(plot_\w+)\.py", text)
        if example:
            return f"gallery/{example[1]}"
        name = re.match(r"[\w.]+", text)
        name = name[0].rstrip(".") if name else ""
        if name in names and (name == text or text[len(name)] == "("):
            return f"api/{names[name]}"
        room, _, rest = name.partition(".")
        if rest and room in names and name == text.split("(")[0] and room[0].isupper():
            value = getattr(*_owner(names[room]))
            if hasattr(value, rest):
                return f"api/{names[room]}"
        if rest and room in names and "." not in rest and name == text and rest[0] != "_":
            if rest not in ("py", "md", "json", "onnx"):
                LOGGER.warning("%s names nothing public.", text, location=self.env.docname)
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
