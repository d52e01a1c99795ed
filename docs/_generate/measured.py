"""Measured costs and scores, read from the tables of the pages that hold them."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent


def table(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Return the first table below a heading: the cells of each row, by the names of the columns.

    Parameters
    ----------
    page : str
        Name of a file in `docs/`.
    heading : str
        Text of the heading, or "" for the first table of the page.

    Returns
    -------
    dict of dict
        Cells by the name of the row (its first cell) and of the column, without marks of bold.

    Raises
    ------
    ValueError
        If the page has no such heading, or no table below it.
    """
    text = (DOCS / page).read_text()
    start = re.search(rf"^#+ {re.escape(heading)}$", text, re.MULTILINE) if heading else None
    if heading and start is None:
        raise ValueError(f"docs/{page} has no heading {heading!r}.")
    lines = text[start.end() if start else 0 :].splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("|")), None)
    if first is None:
        raise ValueError(f"docs/{page} has no table below {heading!r}.")
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
    header, _, *body = rows
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in body}


def costs() -> dict[str, dict[str, str]]:
    """Return the rows of `costs.md`."""
    return table("costs.md", "")


def scores() -> dict[str, dict[str, str]]:
    """Return the rows of the comparison on test parts, with C = 1."""
    return table("comparison.md", "Test parts, one probe for all (C = 1)")


def milliseconds_of_cross_prediction() -> str:
    """Return the time that the closed form takes for a window, in ms of one core."""
    text = (DOCS / "cross_prediction.md").read_text()
    found = re.search(r"takes about ([\d.]+) ms of one core", text)
    if found is None:
        raise ValueError("docs/cross_prediction.md no longer says how long a window takes.")
    return found[1]
