"""Model card of a chain."""

from __future__ import annotations

from typing import Any

from .._persistence import decode
from .._persistence._card import LIMITS

_TEMPLATE = """\
---
library_name: sklearn_pulse
tags: [self-supervised-learning, time-series]
---

# {name}

Written by sklearn_pulse {version}. A step in a folder beside this file has a card of its own there.

## Load

```python
import sklearn_pulse

model = sklearn_pulse.load_pretrained("the folder of this file")
```

Nothing in this folder is executed: `config.json` is data, `model.safetensors` holds numbers.

## Steps

{steps}

{limits}"""


def chain_card(config: dict[str, Any]) -> str:
    """Return the text of the card.

    Parameters
    ----------
    config : dict
        Content of ``config.json``.

    Returns
    -------
    str
        Text of the card, in Markdown.
    """
    return _TEMPLATE.format(
        name=config["class"],
        limits=LIMITS,
        version=config["versions"]["sklearn_pulse"],
        steps="\n".join(_lines(config["chain"], "")),
    )


def _lines(node: Any, label: str) -> list[str]:
    """Return one line per step."""
    label = " ".join(label.split())  # a line break would begin a heading of its own
    start = f"- {label}: " if label else "- "
    if not isinstance(node, dict):
        return [f"{start}{node}"]
    if "folder" in node:
        return [f"{start}in the folder `{node['folder']}`"]
    if "steps" in node:
        return [line for name, step in node["steps"] for line in _lines(step, name)]
    classes = node.get("facts", {}).get("classes_")
    text = "" if classes is None else f", classes {decode(classes).tolist()}"
    inner = _lines(node["estimator"], label) if "estimator" in node else []
    return [f"{start}{node['class'].rpartition('.')[2]}{text}", *inner]
