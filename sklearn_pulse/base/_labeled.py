"""Head on an encoder, trained together with labels or targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseShuffleSplit, GroupShuffleSplit, ShuffleSplit

from .._data._labeled import LabeledBatches, LabeledWindows
from .._data._labels import check_sample_weight, check_together
from .._data._validation import check_windows
from .._data._windows import CheckedWindows
from .._parameters import check_integer, plain
from .._threads import threads
from ..objectives import Source
from ._encoder import WindowEmbedder
from ._fit_data import FitData, Parts, errors_of, rows_of
from ._training import TrainedEmbedder

_HEAD_BLOCK = 256  # rows that the head reads at a time


class LabeledEmbedder(TrainedEmbedder):
    """A head on an encoder, trained together with labels or targets.

    A subclass reads `y`, weights the samples, and predicts from what `_head_output` returns.

    Attributes
    ----------
    head_ : torch.nn.Module
        The fitted head, which reads embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse import FineTuneClassifier
    >>> from sklearn_pulse.base import LabeledEmbedder
    >>> X, y = np.random.default_rng(0).normal(size=(12, 32, 2)), np.arange(12) % 3
    >>> classifier = FineTuneClassifier(embedding_dim=8, encoder_depth=2, random_state=0).fit(X, y)
    >>> embedding = classifier.transform(X)  # by the encoder that was trained with the head
    >>> isinstance(classifier, LabeledEmbedder), embedding.shape
    (True, (12, 8))
    >>> classifier.head_(torch.from_numpy(embedding)).shape
    torch.Size([12, 3])
    """

    _objective_names: tuple[str, ...] = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "head_hidden_dim",
        "bag_pooling",
    )
    _selections: Mapping[str, str | None] = {"last": None, "min_val": "min_val"}
    _splitter: type[BaseShuffleSplit] = ShuffleSplit  # holds out samples that have no groups

    head_hidden_dim: int | None

    @property
    def head_(self) -> torch.nn.Module:
        """The fitted head, which reads embeddings."""
        return self.net_.module_.head

    @property
    def _n_features_out(self) -> int:
        return self.net_.module_.embedding_dim

    def _check_params(self) -> None:
        super()._check_params()
        if self.head_hidden_dim is not None:
            check_integer("head_hidden_dim", self.head_hidden_dim, 1)

    # --- the encoder to start from ---

    def _load_pretrained(self) -> WindowEmbedder | None:
        """Return the fitted transformer to start from; None means a new encoder."""
        return None

    def _load_source(self, pretrained: WindowEmbedder | None, n_timesteps: int) -> Source | None:
        """Return the encoder of a transformer, to be trained on windows of `n_timesteps` steps."""
        return None

    def _choose_layout(self, pretrained: WindowEmbedder | None) -> str:
        """Return the layout in which `fit` reads X."""
        return self._layout

    def _restored_settings(self) -> dict[str, Any]:
        source = self._load_source(self._load_pretrained(), self.n_timesteps_in_)
        return {"module__source": source}

    # --- what `y` is ---

    def _check_y(self, y: ArrayLike | None, n_samples: int) -> NDArray[Any]:
        """Check the `y` of `fit`."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _check_y")

    def _learn_y(self, y: NDArray[Any]) -> NDArray[Any]:
        """Learn classes or targets from the `y` of weighted samples; return `y` as numbers."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _learn_y")

    def _check_y_val(self, y_val: ArrayLike, n_samples: int) -> NDArray[Any]:
        """Check the `y_val` of `fit`; return it as numbers."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _check_y_val")

    def _weighted_batches(
        self, train: LabeledWindows, valid: LabeledWindows | None
    ) -> tuple[LabeledBatches, LabeledBatches | None]:
        """Return batches of each part, in which the weights have mean one."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _weighted_batches")

    # --- from the input of `fit` to batches ---

    def _prepare(self, data: FitData, seed: int) -> Parts:
        pretrained = self._load_pretrained()
        layout = self._choose_layout(pretrained)
        windows = self._check_trained(data.X, data.groups, layout)
        source = self._load_source(pretrained, windows.n_timesteps)
        labeled = self._check_labeled(windows, data.y, data.sample_weight)
        check_together(data.X_val, data.y_val)
        train, valid = self._divide(labeled, data.X_val, data.y_val, seed)
        training, validation = self._weighted_batches(train, valid)
        min_batch_size = 1 if source is None else source.min_batch_size
        settings = {
            "module__source": source,
            "iterator_train__min_batch_size": min_batch_size,
            "iterator_valid__min_batch_size": min_batch_size,
        }
        return Parts(training, validation, settings, labeled)

    def _check_labeled(
        self, windows: CheckedWindows, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> LabeledWindows:
        """Check `y` and the weights of `fit`; return the distinct samples with a weight."""
        checked = self._check_y(y, windows.n_samples)
        weight = check_sample_weight(sample_weight, windows.n_samples)
        samples = np.flatnonzero(weight)
        numbers = self._learn_y(checked[samples])
        windows.scan()
        return LabeledWindows(windows, samples, numbers, weight[samples]).distinct()

    def _divide(
        self,
        labeled: LabeledWindows,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        seed: int,
    ) -> tuple[LabeledWindows, LabeledWindows | None]:
        """Return the samples to train on and the samples to validate on, if there are any."""
        if X_val is not None and y_val is not None:
            return labeled, self._check_validation(X_val, y_val)
        needs = None if self.patience is None else "patience"
        if self.select == "min_val":
            needs = "select='min_val'"
        if self.validation_fraction == 0:
            if needs is not None:
                raise ValueError(
                    f"{needs} needs samples to validate on: set validation_fraction, for example"
                    " to 0.2, or pass X_val and y_val to fit."
                )
            return labeled, None
        groups = labeled.windows.groups
        groups = None if groups is None else groups[labeled.samples]
        train, valid = map(rows_of, self._hold_out(labeled.y, groups, seed))
        if not len(valid):
            if needs is not None:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction} of so few samples is less"
                    f" than one sample, and {needs} needs some: raise validation_fraction, pass"
                    f" X_val and y_val, or go without {needs}."
                )
            return labeled.take(train), None
        return labeled.take(train), labeled.take(valid)

    def _hold_out(
        self, y: NDArray[Any], groups: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        splitter = self._splitter if groups is None else GroupShuffleSplit
        split = splitter(1, test_size=plain(self.validation_fraction), random_state=seed)
        try:
            return next(split.split(y, y, groups))
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} cannot be held out ({error}): set"
                " it to 0, or pass X_val and y_val to fit."
            ) from error

    def _check_validation(self, X_val: ArrayLike, y_val: ArrayLike) -> LabeledWindows:
        with errors_of("X_val"):
            windows = check_windows(self, X_val, reset=False, layout=self._layout)
            windows.scan()
        self._check_validation_length(windows.n_timesteps)
        y = self._check_y_val(y_val, windows.n_samples)
        # The last batch may be small, and counts as much as the others: let no order choose it.
        return LabeledWindows(windows, np.arange(len(y)), y, np.ones(len(y))).distinct()

    # --- prediction ---

    def _head_output(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        """Run the head over blocks of one shape, so that no row depends on the others."""
        device = torch.device(self.net_.device)
        block = torch.zeros(_HEAD_BLOCK, embedding.shape[1], dtype=torch.float32, device=device)
        rows = []
        without_cast = torch.autocast(device.type, enabled=False)
        with threads(self.num_threads), torch.inference_mode(), without_cast:
            for start in range(0, len(embedding), _HEAD_BLOCK):
                some = torch.from_numpy(embedding[start : start + _HEAD_BLOCK])
                block[: len(some)] = some.to(device)
                rows.append(self.head_(block)[: len(some)].cpu().numpy())
        return np.concatenate(rows).astype(np.float64)
