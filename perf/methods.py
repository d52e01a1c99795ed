"""Objectives and batches of the baselines at the size of HAR's windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from perf import published
from sklearn_pulse import presets
from sklearn_pulse.baselines import (
    DSVAETransformer,
    LFADSTransformer,
    PatchTSTTransformer,
    REBARTransformer,
    SimCLRTransformer,
    SimMTMTransformer,
    TimeMAETransformer,
    TS2VecTransformer,
)
from sklearn_pulse.benchmark._methods import method_name
from sklearn_pulse.objectives import Classification, Objective, REBARReconstruction

PRESET, N_CHANNELS, N_TIMESTEPS, N_CLASSES = "har", 6, 128, 6
WINDOWS_PER_RECORDING = 117  # of HAR
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "regressor_dropout": 0.0}

TRANSFORMERS: dict[str, tuple[type, type]] = {
    "DSVAE": (DSVAETransformer, published.LiteralDSVAE),
    "LFADS": (LFADSTransformer, published.LiteralLFADS),
    "PatchTST": (PatchTSTTransformer, published.LiteralPatchTST),
    "REBAR": (REBARTransformer, published.LiteralREBAR),
    "REBAR, first stage": (REBARTransformer, published.LiteralREBARReconstruction),
    "SimCLR": (SimCLRTransformer, published.LiteralSimCLR),
    "SimMTM": (SimMTMTransformer, published.LiteralSimMTM),
    "TimeMAE": (TimeMAETransformer, published.LiteralTimeMAE),
    "TS2Vec": (TS2VecTransformer, published.LiteralTS2Vec),
}
NAMES = [*TRANSFORMERS, "supervised", "fine-tuning"]


@dataclass(frozen=True)
class MethodSize:
    """A baseline with its preset for HAR.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    batch_size : int or None, default=None
        Windows per batch; None means the number in the preset.
    """

    name: str
    batch_size: int | None = None

    def objective(self, **changed: Any) -> Objective:
        """Return the objective with weights drawn from a fixed seed."""
        torch.manual_seed(0)
        if self.name not in TRANSFORMERS:
            head = {"head_hidden_dim": None} if self.name == "supervised" else {}
            return Classification(N_CHANNELS, n_classes=N_CLASSES, **head)
        estimator = self._estimator(**changed)
        if self.name == "REBAR, first stage":
            return REBARReconstruction(
                N_CHANNELS,
                attention=estimator._attention_params(),
                mask_length=estimator.mask_length,
                attention_dropout=estimator.attention_dropout,
            )
        return estimator._objective_class(N_CHANNELS, **estimator._objective_params())

    def literal(self, objective: Objective) -> published.Published:
        """Return the published form of an objective, with its weights."""
        literal = published.LiteralClassifier
        if self.name in TRANSFORMERS:
            literal = TRANSFORMERS[self.name][1]
        return literal(objective)

    def batch(self) -> dict[str, Tensor]:
        """Return a batch as training draws it."""
        n = self.batch_size or self._preset_batch_size()
        generator = torch.Generator().manual_seed(0)
        context = torch.randn(n, 2 * N_TIMESTEPS, N_CHANNELS, generator=generator)
        x = context[:, N_TIMESTEPS // 2 : -N_TIMESTEPS // 2]
        if self.name == "SimCLR":
            room = torch.full((n, 2), N_TIMESTEPS // 2)
            return {"x": x, "context": context, "room": room, "data_std": torch.ones(n)}
        if self.name == "REBAR":
            return self._with_candidates(x.contiguous(), generator)
        if self.name not in TRANSFORMERS:
            return {"x": x, "y": torch.arange(n) % N_CLASSES, "weight": torch.ones(n)}
        return {"x": x.contiguous()}

    def _with_candidates(self, x: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """Add candidates from the recordings of HAR, each anchor in a recording of its own."""
        n, n_candidates = len(x), self._estimator().n_candidates
        shape = n, WINDOWS_PER_RECORDING, N_TIMESTEPS, N_CHANNELS
        recordings = torch.randn(shape, generator=generator)
        recordings[:, 0] = x
        drawn = torch.randint(1, WINDOWS_PER_RECORDING, (n, n_candidates), generator=generator)
        rank = torch.cat([torch.zeros(n, 1, dtype=torch.int64), drawn], dim=1)
        rows = torch.arange(n).unsqueeze(1)
        numbers = rank + WINDOWS_PER_RECORDING * rows
        return {"x": x, "candidates": recordings[rows, drawn], "numbers": numbers}

    def _estimator(self, **changed: Any) -> Any:
        """Return the estimator, as if it had seen windows of HAR's shape."""
        make = TRANSFORMERS[self.name][0]
        preset = presets.get(method_name(make), PRESET)
        known = set(make._get_param_names())
        changed = {name: value for name, value in changed.items() if name in known}
        estimator = make(**preset | changed)
        estimator.n_channels_in_, estimator.n_timesteps_in_ = N_CHANNELS, N_TIMESTEPS
        return estimator

    def _preset_batch_size(self) -> int:
        if self.name == "REBAR, first stage":
            return self._estimator().attention_batch_size
        return self._estimator().batch_size if self.name in TRANSFORMERS else 64
