"""Model card: a description of the saved transformer for its users."""

from __future__ import annotations

import inspect
from typing import Any

from ._values import decode

_TEMPLATE = """\
---
library_name: sklearn_pulse
tags: [self-supervised-learning, time-series]
---

# {name}

{summary}

Written by sklearn_pulse {version}. An embedding has {width} numbers.

## Load

```python
from {module} import {name}

{use}  # {shape}
```

Nothing in this folder is executed: `config.json` is data, `model.safetensors` holds numbers.

## Training

{training}

## Parameters

```
{parameters}
```

{limits}"""

# Sections that every card ends with.
LIMITS = """\
## Licence

Not stated. The author of the model fills this in; the terms of the recordings that it was trained
on may apply to it.

## What it is not for

- Diagnosis, monitoring of patients, or any other decision about a person: it is a research tool.
- Signals of other sensors, sampling rates or scaling than those it was trained on, without a test
  on labelled recordings of your own.
"""

_USE_TRANSFORMER = """\
transformer = {name}.from_pretrained("the folder of this file")
embedding = transformer.transform(X)"""
_USE_PREDICTOR = """\
estimator = {name}.from_pretrained("the folder of this file")
predicted = estimator.predict(X)"""


def model_card(cls: type, config: dict[str, Any], width: int, layout: str) -> str:
    """Return the text of a model card.

    Parameters
    ----------
    cls : type
        Class of the transformer.
    config : dict
        Content of ``config.json``.
    width : int
        Width of the embedding.
    layout : {"ntc", "nct"}
        Order of the axes of a window.

    Returns
    -------
    str
        Text of the card, in Markdown.
    """
    fitted = config["fitted"]
    n_timesteps, n_channels = fitted["n_timesteps_in_"], fitted["n_channels_in_"]
    shape = "(n_samples, n_timesteps)"
    if not config["fitted_on_table"]:
        axes = ("n_timesteps", str(n_channels))
        shape = f"(n_samples, {', '.join(axes if layout == 'ntc' else axes[::-1])})"
    use = _USE_PREDICTOR if hasattr(cls, "predict") else _USE_TRANSFORMER
    held = [f"{name}=a fitted {part['class']}" for name, part in config.get("held", {}).items()]
    return _TEMPLATE.format(
        name=cls.__name__,
        limits=LIMITS,
        summary=(inspect.getdoc(cls) or "").partition("\n")[0],
        version=config["versions"]["sklearn_pulse"],
        width=width,
        module=_public_module(cls),
        use=use.format(name=cls.__name__),
        shape=shape,
        training="\n".join(
            [
                *_windows(n_timesteps, n_channels),
                *_training(config["training"], config["parameters"].get("select")),
                *_signals(fitted),
            ]
        ),
        parameters="\n".join(
            [*held, *(f"{name}={decode(value)!r}" for name, value in config["parameters"].items())]
        ),
    )


def _windows(n_timesteps: int | None, n_channels: int) -> list[str]:
    """Return a line on the windows of the training."""
    length = "an unknown number of" if n_timesteps is None else n_timesteps
    return [f"- Windows of {length} time steps, {n_channels} channel(s)."]


def _training(training: dict[str, Any], select: str | None) -> list[str]:
    """Return lines on the epochs, the weights that were kept, and the last losses."""
    history, selected_epoch = training["history"], training["selected_epoch"]
    if not history:
        return ["- No epochs are recorded."]
    selected = "the last" if selected_epoch is None else f"epoch {selected_epoch + 1}"
    weights = f"those of {selected}"
    if select in ("average", "average_min_val") and selected_epoch is None:
        weights = "the mean over all updates"
    elif select == "average_min_val":
        weights = f"the mean over all updates, as it was after {selected}"
    lines = [f"- {len(history)} epoch(s); the weights are {weights}."]
    for name, label in (("train_loss", "training"), ("valid_loss", "validation")):
        if name in history[-1]:
            lines.append(f"- Last {label} loss: {decode(history[-1][name]):.6g}.")
    return lines


def _signals(fitted: dict[str, Any]) -> list[str]:
    """Return lines on the sampling rate and the channels, as far as they are known."""
    rate, names = (decode(fitted.get(name)) for name in ("sampling_rate_in_", "channel_names_in_"))
    lines = [] if rate is None else [f"- Sampled at {rate:g} Hz."]
    return lines if names is None else [*lines, f"- Channels, in this order: {list(names)}."]


def _public_module(cls: type) -> str:
    """Return the public module of a class: the path of its module up to the first private part."""
    parts = cls.__module__.split(".")
    private = [part.startswith("_") and part != "__main__" for part in parts]
    return ".".join(parts[: private.index(True)] if True in private else parts)
