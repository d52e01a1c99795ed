"""Check that pages of the built site load nothing from the network."""

import re
from pathlib import Path

# What a browser loads by itself; a link that a reader follows may lead anywhere.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)[^>]*\ssrc=["'](https?:)?//"""
    r"""|<link[^>]*rel=["'](?:stylesheet|preload|icon|preconnect)["'][^>]*href=["'](https?:)?//"""
    r"""|<link[^>]*href=["'](https?:)?//[^>]*rel=["'](?:stylesheet|preload|icon|preconnect)"""
)
_IN_STYLES = re.compile(r"""(?:@import|url\()\s*["']?(https?:)?//""")


def loads_from_network(site: Path) -> list[str]:
    """Return the files of a built site that load something from the network."""
    found = [path for path in sorted(site.rglob("*.html")) if _LOADED.search(path.read_text())]
    found += [path for path in sorted(site.rglob("*.css")) if _IN_STYLES.search(path.read_text())]
    return [str(path.relative_to(site)) for path in found]
