"""Tables of docs/performance.md, from the results that pytest-benchmark stores.

    python -m perf.report output/benchmarks.json
    python -m perf.report output/gpu/timings --page output/gpu/performance.md

A folder stands for all of its JSON files. Only the sections between the page's markers are
replaced, and of these only the ones of a device that was measured.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
DROPOUT = {"step": "each step", "sequence": "once per crop", "": ""}
Row = dict[str, Any]


def table(head: str, rows: Iterable[str]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    n_columns = head.count("|") - 1
    return "\n".join([head, "|---|" + "---:|" * (n_columns - 1), *rows])


def summary(ratios: Sequence[float]) -> Row:
    """Return the median of ratios and their range, as entries of a row."""
    return {"ratio": statistics.median(ratios), "ratio_range": [min(ratios), max(ratios)]}


def span(row: Row) -> str:
    """Format the ratio and its range."""
    low, high = row["ratio_range"]
    return f"**{row['ratio']:.2f}** ({low:.2f} to {high:.2f})"


def rate(windows_per_second: float) -> str:
    """Format windows per second, with one decimal below 100."""
    return f"{windows_per_second:,.{0 if windows_per_second >= 100 else 1}f}"


def steps(rows: list[Row]) -> str:
    """Return the table of training steps and embeddings."""
    head = (
        "| size | task | device | precision | dropout of the embedding | windows/s | literal |"
        " ratio (range) | relative to the products' ratio | MFLOP | share of the peak |"
    )
    return table(
        head,
        (
            f"| {row['size']} | {row['task']} | {row['device']} | {row['precision']} |"
            f" {DROPOUT[row['theta_dropout']]} | {rate(row['windows_per_second'])} |"
            f" {rate(row['literal_windows_per_second'])} | {span(row)} |"
            f" {row['ratio'] / row['flop_ratio']:.0%} | {row['mflop']:,.0f} |"
            f" {row['windows_per_second'] * row['mflop'] / 1e3 / row['peak_gflops']:.0%} |"
            for row in rows
            if row["task"] in ("training", "embedding")
        ),
    )


def changes(rows: list[Row]) -> str:
    """Return the table of single changes that are undone."""
    return table(
        "| change | step time without it / with it (range) |",
        (f"| {row['size']} | {span(row)} |" for row in rows if row["task"] == "change"),
    )


def others(rows: list[Row]) -> str:
    """Return the table of the estimator's overhead, its scaling, the search and replays."""
    names = {
        "overhead": "`fit` against a bare loop of the same steps",
        "linear": "`{size}` of few windows against four times as many",
        "replay": "`fit` of 50 batches, steps replayed against launched: {size}",
        "closed form": "{size}, against all threads of the CPU beside it",
        "search": "12 settings x 3 folds in {size} against one process",
        "search of maps": "6 {size} x 3 folds with `memory` against none",
    }
    lines = [
        f"| {names[row['task']].format(size=row['size'])}, {row['device']} | {span(row)} |"
        for row in rows
        if row["task"] in names
    ]
    return table("| compared | time of the second / of the first (range) |", lines)


def machine(rows: list[Row]) -> str:
    """Describe each machine that the benchmarks ran on; stages may have had different ones."""
    peaks: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        peaks.setdefault(row["machine"], {})[row["device"], row["precision"]] = row["peak_gflops"]
    lines = []
    for name, of_kind in peaks.items():
        parts = [f"{rate:,.0f} GFLOP/s on {d} in {p}" for (d, p), rate in sorted(of_kind.items())]
        lines.append(f"{name}. Matrix products reached {' and '.join(parts)}.")
    return "\n".join(lines)


def gpu(rows: list[Row]) -> str:
    """Return all that was measured on a GPU."""
    return "\n\n".join(write(rows) for write in (machine, steps, others))


# The device of a section, and what writes it.
SECTIONS: dict[str, tuple[str, Callable[[list[Row]], str]]] = {
    "steps": ("cpu", steps),
    "changes": ("cpu", changes),
    "others": ("cpu", others),
    "machine": ("cpu", machine),
    "gpu": ("cuda", gpu),
}


def replace_section(page: str, name: str, text: str) -> str:
    """Return the page with the text between the section's markers replaced."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{PAGE.name} has no section between {start} and {end}")
    return pattern.sub(lambda _: f"{start}\n{text}\n{end}", page)


def fill(page: str, rows: list[Row]) -> str:
    """Return the page with the sections of each measured device replaced by tables of `rows`."""
    for name, (device, write) in SECTIONS.items():
        measured = [row for row in rows if row["device"] == device]
        if measured:
            page = replace_section(page, name, write(measured))
    return page


def read(path: Path) -> list[Row]:
    """Return the rows of a file that pytest-benchmark stored, or of all files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    # A stage that was stopped leaves an empty file.
    stored = [json.loads(file.read_text()) for file in files if file.stat().st_size]
    return [benchmark["extra_info"] for each in stored for benchmark in each["benchmarks"]]


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", type=Path, help="a JSON file, or a folder of them")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the filled page is written")
    options = parser.parse_args()
    if not options.benchmarks.exists():
        parser.error(f"there is no {options.benchmarks}: make bench writes output/benchmarks.json")
    rows = read(options.benchmarks)
    if not rows:
        parser.error(f"{options.benchmarks} holds no timings")
    options.page.write_text(fill(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
