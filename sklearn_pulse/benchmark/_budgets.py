"""How much of the published training is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Budget:
    """Limits on windows, epochs and seeds; methods and data sets are never cut.

    Parameters
    ----------
    max_timesteps : int or None
        Time steps of the pre-training windows together: a data set gives
        ``max_timesteps // length`` windows to train on and a quarter of that to validate on, or
        what it has. None does not cut.
    max_epochs : int or None
        Epochs of pre-training, of each of its stages, at most; None leaves the preset's.
    finetune_epochs : int
        Epochs of fine-tuning in the transfer protocol.
    supervised_epochs : int or None
        Epochs of the supervised row, at most; None leaves the preset's.
    n_seeds : int
        Seeds of a run that does not name its own number.
    """

    max_timesteps: int | None
    max_epochs: int | None
    finetune_epochs: int
    supervised_epochs: int | None
    n_seeds: int

    def n_windows(self, length: int, part: str) -> int | None:
        """Return the largest number of windows of a part, None for all."""
        if self.max_timesteps is None:
            return None
        n_windows = self.max_timesteps // length
        return max(2, n_windows if part == "train" else n_windows // 4)

    def pretraining(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the epochs to pre-train, of each stage, where the settings have so many."""
        names = [name for name in ("max_epochs", "attention_epochs") if name in settings]
        return {name: _at_most(settings[name], self.max_epochs) for name in names}

    def supervised(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the epochs of the supervised row."""
        return {"max_epochs": _at_most(settings["max_epochs"], self.supervised_epochs)}

    def __str__(self) -> str:
        if self.max_timesteps is None:
            return "all windows and epochs of the presets"
        return (
            f"pre-training on windows of at most {self.max_timesteps:,} time steps together, for"
            f" at most {self.max_epochs} epochs a stage; {self.finetune_epochs} epochs of"
            f" fine-tuning, {self.supervised_epochs} of the supervised row"
        )

    def identity(self) -> dict[str, Any]:
        """Return what the budget changes in a pre-trained encoder."""
        return {"max_timesteps": self.max_timesteps, "max_epochs": self.max_epochs}


def _at_most(value: int, limit: int | None) -> int:
    return value if limit is None else min(value, limit)


BUDGETS = {
    "smoke": Budget(8_000, 1, 1, 1, 1),
    "tiny": Budget(40_000, 10, 10, 10, 3),
    "small": Budget(160_000, 10, 40, 40, 3),
    "medium": Budget(1_000_000, 30, 40, 100, 3),
    "full": Budget(None, None, 40, None, 5),
}
