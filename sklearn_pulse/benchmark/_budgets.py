"""Budgets: limits on the published training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Budget:
    """Limits on windows, epochs and seeds, for all methods and data sets.

    Parameters
    ----------
    max_timesteps : int or None
        Maximum number of time steps in all pre-training windows together: at most
        ``max_timesteps // length`` windows are used for training, and at most a quarter of that
        number for validation, but two of each where windows are too long for that. None sets no
        limit.
    max_epochs : int or None
        Maximum number of epochs of each stage of pre-training; None keeps that of the preset.
    finetune_epochs : int
        Number of epochs of fine-tuning in the transfer protocol.
    supervised_epochs : int or None
        Maximum number of epochs of the supervised method; None keeps that of the preset.
    n_seeds : int
        Number of seeds, unless a run sets its own number.
    precision : {"float32", "bfloat16"}, default="float32"
        Parameter `precision` of the trained methods.

    Examples
    --------
    >>> from sklearn_pulse.benchmark import BUDGETS
    >>> BUDGETS["small"].n_windows(128, "train")
    1250
    """

    max_timesteps: int | None
    max_epochs: int | None
    finetune_epochs: int
    supervised_epochs: int | None
    n_seeds: int
    precision: str = "float32"

    def n_windows(self, length: int, part: str) -> int | None:
        """Return the maximum number of windows of a part.

        Parameters
        ----------
        length : int
            Time steps of a window.
        part : {"train", "val"}
            Part of the data set.

        Returns
        -------
        int or None
            Number of windows; None means all.
        """
        if self.max_timesteps is None:
            return None
        n_windows = self.max_timesteps // length
        return max(2, n_windows if part == "train" else n_windows // 4)

    def pretraining(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the numbers of epochs of pre-training, and the precision.

        Parameters
        ----------
        settings : dict
            Parameters of the method.

        Returns
        -------
        dict
            The parameters of `epochs`; and `precision`, if the method has it.
        """
        return self.epochs(settings) | self._precision(settings)

    def epochs(self, settings: dict[str, Any]) -> dict[str, int]:
        """Return the numbers of epochs of pre-training.

        Parameters
        ----------
        settings : dict
            Parameters of the method.

        Returns
        -------
        dict
            The parameters that hold numbers of epochs, one per stage, within the limit.
        """
        names = [name for name in ("max_epochs", "attention_epochs") if name in settings]
        return {name: _at_most(settings[name], self.max_epochs) for name in names}

    def supervised(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the number of epochs of the supervised method.

        Parameters
        ----------
        settings : dict
            Parameters of the method.

        Returns
        -------
        dict
            The parameter `max_epochs`, within the limit; and `precision`, if the method has it.
        """
        epochs = _at_most(settings["max_epochs"], self.supervised_epochs)
        return {"max_epochs": epochs} | self._precision(settings)

    def __str__(self) -> str:
        if self.max_timesteps is None:
            suffix = "" if self.precision == "float32" else f", in {self.precision}"
            return "all windows and epochs of the presets" + suffix
        return (
            f"pre-training on windows of at most {self.max_timesteps:,} time steps together, for"
            f" at most {count_epochs(self.max_epochs)} per stage;"
            f" {count_epochs(self.finetune_epochs)} of fine-tuning,"
            f" {self.supervised_epochs} of the supervised method"
        )

    def identity(self) -> dict[str, Any]:
        """Return the limits on which a pre-trained encoder depends.

        Returns
        -------
        dict
            `max_timesteps`, `max_epochs`, and `precision` unless it is float32.
        """
        limits = {"max_timesteps": self.max_timesteps, "max_epochs": self.max_epochs}
        return limits if self.precision == "float32" else limits | {"precision": self.precision}

    def _precision(self, settings: dict[str, Any]) -> dict[str, str]:
        """Return the parameter `precision` of a method that has it."""
        return {"precision": self.precision} if "precision" in settings else {}


def count_epochs(number: int | None) -> str:
    """Return a number of epochs as text."""
    return "1 epoch" if number == 1 else f"{number} epochs"


def _at_most(value: int, limit: int | None) -> int:
    """Return the value within a limit; None is no limit."""
    return value if limit is None else min(value, limit)


BUDGETS = {
    "smoke": Budget(8_000, 1, 1, 1, 1),
    "tiny": Budget(40_000, 10, 10, 10, 3),
    "small": Budget(160_000, 10, 40, 40, 3),
    "medium": Budget(1_000_000, 30, 40, 100, 3),
    "full": Budget(None, None, 40, None, 5),
    "full-bfloat16": Budget(None, None, 40, None, 5, "bfloat16"),
}
