"""Figures of the page that helps to choose a method; their numbers are read from other pages."""

import math
import textwrap
from dataclasses import dataclass
from html import escape

from . import measured

_WIDTH, _LINE, _PAD, _GAP = 380, 19, 12, 26


@dataclass(frozen=True)
class Choice:
    """A question, and what to take if the answer is yes."""

    question: str
    take: str
    why: list[str]


def _whole(score: str) -> str:
    """Return a score whose spread stays on its line."""
    return score.replace(" ±", "\u00a0±").replace("± ", "±\u00a0")


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _embeds(row: str) -> str:
    return f"{row} embeds {measured.costs()[row]['embedding, windows/s']} windows/s"


def _compare(row: str, *columns: str) -> str:
    """Return the scores of a row; a lost cell of the closed form is called lost."""
    cells = measured.scores()[row]
    named = [f"{column} {_whole(cells[column])}" for column in columns]
    return f"{row}: " + ", ".join(named)


def choices() -> list[Choice]:
    """Return the questions in the order in which they are asked; the last one is no question."""
    milliseconds = measured.milliseconds_of_cross_prediction()
    pulse = measured.table("results.md", "PULSE beside its controls")["HAR, all labels"]
    closed = f"cross-prediction: {milliseconds} ms of one core per window, no training"
    trains = f"PULSE trains on {measured.costs()['PULSE']['training, windows/s']} windows/s"
    return [
        Choice(
            "Do you want the published method, or to look at reconstructions?",
            "PulseTransformer",
            [
                f"HAR, all labels, small budget: PULSE {_whole(pulse['PULSE'])}, "
                f"untrained encoder {_whole(pulse['untrained encoder'])}",
                trains,
            ],
        ),
        Choice(
            "Is it heart rhythm, from an ECG, with few labelled people?",
            "QUANT (aeon), beside CrossPredictionTransformer",
            [
                _compare("MIT-BIH rhythm, 1 person", "QUANT", "cross-prediction"),
                "the cost of QUANT was not measured",
            ],
        ),
        Choice(
            "Is it EEG, with few labelled people?",
            "MultiRocket-Hydra (aeon), beside CrossPredictionTransformer",
            [_compare("Bonn, 5 classes, 1 person", "MultiRocket-Hydra", "cross-prediction")],
        ),
        Choice(
            "Are most windows labelled?",
            "MiniRocketTransformer, MultiRocket-Hydra (aeon), CrossPredictionTransformer: compare",
            [
                _compare("HAR, recordings, all labels", "MiniRocket", "cross-prediction"),
                _compare("Bonn, 5 classes, all labels", "MultiRocket-Hydra", "cross-prediction"),
                _embeds("MiniRocket"),
            ],
        ),
        Choice(
            "Else: few labels, or labels of few people",
            "CrossPredictionTransformer",
            [_compare("HAR, recordings, 1 person", "cross-prediction", "MiniRocket"), closed],
        ),
    ]


def decision() -> str:
    """Return the decision figure as SVG, narrow enough for a phone."""
    parts: list[str] = []
    y = 4
    questions = choices()
    for number, choice in enumerate(questions):
        last = number == len(questions) - 1
        asked = _box(parts, 2, y, _WIDTH - 4, _wrap(choice.question, 46), "question")
        parts.append(_arrow(18, asked, asked + _GAP, "" if last else "yes"))
        lines = _wrap(choice.take, 36)
        heads = len(lines)
        for reason in choice.why:
            lines += _wrap(reason, 42)
        y = _box(parts, 8, asked + _GAP, _WIDTH - 46, lines, "take", heads)
        if not last:
            parts.append(_arrow(_WIDTH - 24, asked, y + 14, "no"))
            y += 14
    label = "How to choose a method, with measured scores and costs"
    return _svg(parts, y + 6, label)


def _svg(parts: list[str], height: int, label: str) -> str:
    head = f'<svg class="figure" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}" '
    return "\n".join([head + 'xmlns="http://www.w3.org/2000/svg">', *parts, "</svg>", ""])


def _box(
    parts: list[str], x: int, y: int, width: int, lines: list[str], kind: str, n_bold: int = 0
) -> int:
    """Add a box with lines of text; return where it ends."""
    height = len(lines) * _LINE + 2 * _PAD - 4
    parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
    for number, line in enumerate(lines):
        bold = ' class="bold"' if number < n_bold else ""
        baseline = y + _PAD + 11 + number * _LINE
        parts.append(f'<text{bold} x="{x + _PAD}" y="{baseline}">{escape(line)}</text>')
    return y + height


def _arrow(x: int, start: int, end: int, text: str) -> str:
    tip = f"M{x} {start} V{end - 2} M{x - 5} {end - 8} L{x} {end - 2} L{x + 5} {end - 8}"
    return (
        f'<path class="line" d="{tip}"/>'
        f'<text class="answer" x="{x + 8}" y="{start + 18}">{text}</text>'
    )


def _label(text: str, x: float, y: float, taken: list[tuple[float, float, float, float]]) -> str:
    """Return the name of a point, at the first place near it where no other text or point is."""
    width = 6.5 * len(text)
    for below in (4, -8, 16, -20, 28, 40):
        for start in (x + 8, x - 8 - width):
            box = (start, y + below - 10, start + width, y + below + 1)
            if start + width < _WIDTH and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                at = (
                    f'x="{x + 8:.0f}" class="small"'
                    if start > x
                    else f'x="{x - 8:.0f}" class="small end"'
                )
                return f'<text {at} y="{y + below:.0f}">{text}</text>'
    raise ValueError(f"The figure of costs and scores has no room for the name of {text}.")


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# Rows of costs.md, and the columns or rows of results.md that hold their score.
_POINTS = ("PULSE", "DSVAE", "LFADS", "PatchTST", "REBAR", "SimCLR", "SimMTM", "TimeMAE", "TS2Vec")


def cost_and_score() -> str:
    """Return the accuracy of the trained methods against the speed of their training, as SVG."""
    costs = measured.costs()
    scores = measured.table("results.md", "Linear probe, HAR, validation part")
    points = {
        name: (
            float(costs[name]["training, windows/s"].replace(",", "")),
            float(scores[name]["accuracy"].split(" ±")[0]),
        )
        for name in _POINTS
    }
    controls = {
        name: float(scores[f"{name} (control)"]["accuracy"].split(" ±")[0])
        for name in ("MiniRocket", "untrained encoder")
    }
    left, top, width, height = 40, 28, 330, 270
    low, high = 65.0, 100.0
    speeds = [math.log10(speed) for speed, _ in points.values()]
    slow, fast = min(speeds) - 0.15, max(speeds) + 0.25

    def across(speed: float) -> float:
        return left + (math.log10(speed) - slow) / (fast - slow) * width

    def down(score: float) -> float:
        return top + (high - score) / (high - low) * height

    parts = [f'<path class="line" d="M{left} {top} V{top + height} H{left + width}"/>']
    for score in range(70, 101, 10):
        parts.append(f'<text x="{left - 6}" y="{down(score) + 5:.0f}" class="end">{score}</text>')
    for speed in (30, 100, 300, 1000):
        x = across(speed)
        parts.append(f'<text x="{x:.0f}" y="{top + height + 18}" class="middle">{speed}</text>')
    for name, score in controls.items():
        y = down(score)
        parts.append(f'<path class="control" d="M{left} {y:.1f} H{left + width}"/>')
        parts.append(f'<text class="small" x="{left + 4}" y="{y - 4:.0f}">{name}: {score}</text>')
    centres = {name: (across(speed), down(score)) for name, (speed, score) in points.items()}
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in centres.values()]
    taken += [(left, down(score) - 14, left + 140, down(score)) for score in controls.values()]
    for name, (x, y) in centres.items():
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(_label(name, x, y, taken))
    parts.append(
        f'<text class="middle" x="{left + width / 2:.0f}" y="{top + height + 38}">'
        "training, windows per second</text>"
    )
    parts.append(f'<text class="small" x="4" y="{top - 12}">accuracy, %</text>')
    label = "Accuracy of each trained method on HAR against the speed of its training"
    return _svg(parts, top + height + 46, label)
