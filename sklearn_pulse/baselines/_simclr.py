"""SimCLR: contrast of a window's augmented copy with the other windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._data._batches import as_batch
from .._data._windows import CheckedWindows
from .._moments import Moments
from .._training._iterator import Batch
from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    LayerNorm,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Schedule,
    SelectOrAverage,
)
from ..augmentations import Jitter, RandomApply, Scale
from ..base import (
    ContrastiveTransformer,
    WindowBatches,
    check_pair,
    check_real,
    complete_docstring,
)
from ..base._fit_data import errors_of
from ..functional import info_nce
from ..networks import observed_or_all
from ..objectives import ContrastiveObjective
from ..sampling import draw_shifts, observed_span, shift_within, take_steps, whole_steps
from ..windows import RecordingWindows
from ..windows._context import ContextWindows


@complete_docstring
class AugmentationContrast(ContrastiveObjective):
    """Loss of SimCLR (paper, Appendix C; one direction, mean over the anchors).

    The anchor is the window as it is. Its positive is shifted, scaled and jittered, in this order,
    each with a probability of `augmentation_probability`. Every other anchor and positive of the
    batch is a negative.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    temperature : float, default=1.0
        Divisor of the cosine similarities; the published values are 1 and 0.001 (ECG).
    max_shift : float, default=0.5
        Largest shift of the positive along the recording, as a fraction of the window. The
        published code has half a window (0.5), the paper's text a whole one (1.0); 0 does not
        shift.
    scale_range : pair of float, default=(0.5, 1.5)
        Bounds of the factor that the positive is multiplied by.
    jitter : float, default=0.2
        Standard deviation of the noise that is added to the positive, in units of the standard
        deviation of the training windows (in validation, of the validation windows). 0 adds none.
    augmentation_probability : float, default=0.5
        Probability of each augmentation, drawn for each window by itself.
    **representation
        The encoder, its normalisation and dropout, and the seed, as in
        :class:`ContrastiveObjective`.

    Examples
    --------
    >>> import torch
    >>> objective = AugmentationContrast(2, embedding_dim=8, encoder_hidden_dim=8, encoder_depth=3)
    >>> objective(x=torch.randn(4, 32, 2)).shape
    torch.Size([])
    """

    indivisible: str | None = None
    replayed = "always"

    def __init__(
        self,
        n_channels: int,
        *,
        temperature: float = 1.0,
        max_shift: float = 0.5,
        scale_range: tuple[float, float] = (0.5, 1.5),
        jitter: float = 0.2,
        augmentation_probability: float = 0.5,
        **representation: Any,
    ) -> None:
        super().__init__(n_channels, **representation)
        self.temperature = temperature
        self.max_shift = max_shift
        self.probability = augmentation_probability
        self.scale = RandomApply(Scale(*scale_range), augmentation_probability)
        self.jitter = RandomApply(Jitter(jitter), augmentation_probability)

    def forward(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        data_std: Tensor | None = None,
        context: Tensor | None = None,
        context_observed: Tensor | None = None,
        room: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        data_std : Tensor of shape (batch,), or None, default=None
            Standard deviation of the data, the unit of the jitter; None takes that of the batch.
        context : Tensor of shape (batch, n_timesteps + 2 * margin, n_channels), or None
            Windows with `margin` steps of their recordings on both sides, from which positives are
            cut; None shifts within the window.
        context_observed : Tensor of bool, of shape (batch, n_timesteps + 2 * margin), or None
            True where a step of the context was observed; None means that every step was observed.
        room : Tensor of int, of shape (batch, 2), or None, default=None
            Number of recorded steps of the context before and after the window; None means all.

        Returns
        -------
        Tensor, scalar
            The loss; zero for a single window, which has no other window to be told from.
        """
        generator = self.generator(x.device)
        if context is None:
            positive, positive_observed = self._shift_within(x, observed, generator)
        else:
            positive, positive_observed = self._shift_along(
                context, context_observed, room, x.shape[1], generator
            )
        if data_std is None:
            data_std = _standard_deviation(x, observed)
        positive = self.scale(positive, generator)
        positive = self.jitter(positive, generator, unit=data_std)
        return self.contrast(x, observed, positive, positive_observed)

    def contrast(
        self,
        x: Tensor,
        observed: Tensor | None,
        positive: Tensor,
        positive_observed: Tensor | None,
    ) -> Tensor:
        """Return the loss of windows whose positives are given.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Anchors.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            True where a step of an anchor was observed; None means that every step was observed.
        positive : Tensor of shape (batch, n_timesteps, n_channels)
            Augmented version of each anchor.
        positive_observed : Tensor of bool, of shape (batch, n_timesteps), or None
            True where a step of a positive was observed; None means that every step was observed.

        Returns
        -------
        Tensor, scalar
            Mean over anchors of the cross-entropy of finding the positive among all other windows,
            anchors and positives alike.
        """
        if observed is not None or positive_observed is not None:
            masks = observed_or_all(x, observed), observed_or_all(positive, positive_observed)
            observed = torch.cat(masks)
        batch = len(x)
        numbers = torch.arange(2 * batch, device=x.device)
        mine = self.share.rows(batch)
        anchors = numbers[mine]
        embedding = self._embed_all(torch.cat([x, positive]), observed, anchors)
        others = anchors.unsqueeze(1) != numbers
        loss = info_nce(embedding[mine], embedding, anchors + batch, self.temperature, others)
        return loss if self.share.size == 1 else loss * (len(anchors) / batch)

    def _embed_all(self, both: Tensor, observed: Tensor | None, anchors: Tensor) -> Tensor:
        """Embed anchors and positives, (2 * batch, ...); each process embeds those of its share."""
        if self.share.size == 1:
            return self.represent(both, observed)
        batch = len(both) // 2
        mine = torch.cat([anchors, anchors + batch])
        seen = None if observed is None else observed[mine]
        embedding = self.represent(both[mine], seen, part=(2 * batch, mine))
        # (n_mine, 2, embedding_dim): each anchor beside its positive
        pairs = embedding.float().unflatten(0, (2, -1)).transpose(0, 1)
        return self.share.gather(pairs.contiguous(), batch).transpose(0, 1).flatten(0, 1)

    def _shift_within(
        self, x: Tensor, observed: Tensor | None, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Shift windows without their surroundings; the first or last step is repeated."""
        if observed is None:
            lengths = torch.full((len(x),), x.shape[1], device=x.device)
        else:
            first, stop = observed_span(observed)
            lengths = stop - first
        return shift_within(x, self._draw_shifts(lengths, generator), observed)

    def _shift_along(
        self,
        context: Tensor,
        observed: Tensor | None,
        room: Tensor | None,
        n_timesteps: int,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor | None]:
        """Shift windows along their recordings, up to the ends of these."""
        margin = (context.shape[1] - n_timesteps) // 2
        lengths = torch.full((len(context),), n_timesteps, device=context.device)
        shift = self._draw_shifts(lengths, generator, room)
        if observed is None:
            return take_steps(context, margin + shift, n_timesteps), None
        # A window stays in its place if the shifted window would hold no observed step.
        seen = take_steps(observed, margin + shift, n_timesteps).any(1)
        start = margin + shift * seen
        return take_steps(context, start, n_timesteps), take_steps(observed, start, n_timesteps)

    def _draw_shifts(
        self, lengths: Tensor, generator: torch.Generator, room: Tensor | None = None
    ) -> Tensor:
        chosen = torch.rand(len(lengths), generator=generator, device=lengths.device)
        shifts = draw_shifts(self.max_shift, lengths, generator, room)
        return shifts * (chosen < self.probability)


class ContrastBatches(WindowBatches):
    """Batches of windows with the spread of the data and, for lazy windows, their surroundings.

    Parameters
    ----------
    windows : Windows
        Checked windows.
    index : ndarray of int
        Numbers of the windows that batches are taken from.
    device : torch.device
        Device of the batches.
    max_shift : float
        Largest shift as a fraction of the window; the surroundings reach as far on both sides.
    """

    _masks = WindowBatches._masks | {"context_observed": "context"}

    def __init__(
        self,
        windows: CheckedWindows,
        index: NDArray[np.intp],
        device: torch.device,
        max_shift: float,
    ) -> None:
        super().__init__(windows, index, device)
        self.data_std = _data_std(windows, index)
        context = _context_windows(windows, max_shift)
        self.wide = None if context is None else CheckedWindows(context, "ntc")

    def __getitem__(self, index: Tensor) -> Batch:
        if self.wide is None:
            batch = super().__getitem__(index)
        else:
            batch = self._with_context(self.wide, index)
        batch["data_std"] = torch.full((len(index),), self.data_std, device=self.device)
        return batch

    def _with_context(self, windows: CheckedWindows, index: Tensor) -> Batch:
        numbers = self.index[index.numpy()]
        with errors_of("the recordings around the windows, which max_shift reaches into"):
            wide = as_batch(windows.take(numbers), self.device)
        margin, n_timesteps = windows.data.margin, self.windows.n_timesteps
        inner = slice(margin, margin + n_timesteps)
        room = torch.from_numpy(windows.data.room(numbers)).to(self.device)
        batch = {"x": wide["x"][:, inner], "context": wide["x"], "room": room}
        if "observed" in wide:
            batch["observed"] = wide["observed"][:, inner]
            batch["context_observed"] = wide["observed"]
        return batch

    def _n_values(self) -> int:
        wide = 0 if self.wide is None else self.wide.n_timesteps * self.wide.n_channels
        return super()._n_values() + wide


class SimCLRTransformer(ContrastiveTransformer):
    """Embed windows so that an augmented copy of each can be told from all others (SimCLR).

    The copy is shifted along the recording, scaled and jittered, each with a probability of one
    half. With a :class:`~sklearn_pulse.windows.RecordingWindows` (``sliding_windows(...,
    lazy=True)``) the copies are cut from the recording, up to half a window before or after. Near
    an end of the recording the shift goes no farther than the recording does; the published code
    leaves out windows so near to an end. The copies hold steps that no window holds, such as those
    of windows that were set aside for a test: divide whole recordings into training and test.
    Windows in an array, and windows that a preprocessing step made, do not know their surroundings:
    their first or last step is repeated instead. Preprocess recordings before they are cut.

    Parameters
    ----------
    layer_norm : {"everywhere", "embedding", "none"}, default="everywhere"
        Where the encoder's layer normalisation acts: in the loss and the embedding, in the
        embedding alone (so it is never trained), or nowhere (the code that this SimCLR was taken
        from).
    representation_dropout : float, default=0.0
        Dropout probability of the encoder's output in training; 0.1 in the code that this SimCLR
        was taken from.
    temperature : float, default=1.0
        Divisor of the cosine similarities; the published values are 1 and 0.001 (ECG).
    max_shift : float, default=0.5
        Largest shift of the copy along the recording, as a fraction of the window. The published
        code has half a window (0.5), the paper's text a whole one (1.0); 0 does not shift.
    scale_range : pair of float, default=(0.5, 1.5)
        Bounds of the factor that the copy is multiplied by.
    jitter : float, default=0.2
        Standard deviation of the noise that is added to the copy, in units of the standard
        deviation of the training windows (in validation, of the validation windows). 0 adds none.
    augmentation_probability : float, default=0.5
        Probability of each augmentation, drawn for each window by itself.
    batch_size : int, default=128
        Number of windows per training step; at least 2. A larger batch has more negatives. A last
        batch of one window joins the batch before.
    validation_fraction : float, default=0.15
        Fraction of the samples that is held out to select the weights, or of the groups if `fit` is
        given `groups`. 0 holds out none; without validation, or with a single window to validate
        on, the last weights or their average are kept. With `RecordingWindows`, pass `groups` to
        `fit`: shifted copies reach beyond their window.

    References
    ----------
    Chen, T. et al. (2020). A simple framework for contrastive learning of visual representations.
    ICML. Adapted to recordings as in the paper, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import SimCLRTransformer
    >>> from sklearn_pulse.windows import sliding_windows
    >>> recordings = np.random.default_rng(0).normal(size=(4, 640, 3))
    >>> windows = sliding_windows(recordings, length=64, stride=64, lazy=True)
    >>> simclr = SimCLRTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> simclr.fit(windows.X, groups=windows.recording).transform(windows.X).shape
    (40, 16)
    """

    _objective_class = AugmentationContrast
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "layer_norm",
        "representation_dropout",
        "temperature",
        "max_shift",
        "scale_range",
        "jitter",
        "augmentation_probability",
    )
    _one_step = (
        "they cannot be shifted and hold no dynamics, so nothing of a signal is learnt from them"
    )
    _min_batch_size = 2
    _uses_recordings = True

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        layer_norm: LayerNorm = "everywhere",
        representation_dropout: float = 0.0,
        temperature: float = 1.0,
        max_shift: float = 0.5,
        scale_range: tuple[float, float] = (0.5, 1.5),
        jitter: float = 0.2,
        augmentation_probability: float = 0.5,
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        schedule: Schedule = "one_cycle",
        betas: tuple[float, float] | None = None,
        batch_size: int = 128,
        gradient_clip_value: float | None = 5.0,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: SelectOrAverage = "trailing_mean",
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        distributed: Distributed = False,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.layer_norm = layer_norm
        self.representation_dropout = representation_dropout
        self.temperature = temperature
        self.max_shift = max_shift
        self.scale_range = scale_range
        self.jitter = jitter
        self.augmentation_probability = augmentation_probability
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.betas = betas
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation
        self.select = select
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.distributed = distributed
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> ContrastBatches:
        return ContrastBatches(windows, index, self._device, self.max_shift)

    def _shares_steps(self, windows: CheckedWindows) -> bool:
        context = _context_windows(windows, self.max_shift)
        return super()._shares_steps(windows) if context is None else context.overlaps

    def _check_params(self) -> None:
        super()._check_params()
        check_real("temperature", self.temperature, open_minimum=True)
        check_real("max_shift", self.max_shift, 0.0, 1.0, open_maximum=False)
        check_real("jitter", self.jitter)
        check_real(
            "augmentation_probability", self.augmentation_probability, 0.0, 1.0, open_maximum=False
        )
        check_pair("scale_range", self.scale_range, (0.5, 1.5))
        for bound in self.scale_range:
            check_real("each bound of scale_range", bound)
        if self.scale_range[0] > self.scale_range[1]:
            raise ValueError(
                f"scale_range={self.scale_range!r} has its larger bound first: swap them."
            )


def _standard_deviation(x: Tensor, observed: Tensor | None) -> Tensor:
    """Return the standard deviation of all observed entries of a batch, once per window."""
    entries = x if observed is None else x[observed]
    return entries.std(correction=0).expand(len(x))


def _context_windows(windows: CheckedWindows, max_shift: float) -> ContextWindows | None:
    """Return windows widened by their context, or None if their recordings are unknown."""
    if not isinstance(windows.data, RecordingWindows) or windows.channels_first:
        return None
    if not windows.data._cuts_only:  # the context would lack what `take` does
        return None
    return ContextWindows(windows.data, whole_steps(max_shift * windows.n_timesteps))


def _data_std(windows: CheckedWindows, index: NDArray[np.intp]) -> float:
    """Compute the standard deviation of all observed entries of windows, block by block."""
    moments = Moments.of_nothing(1)
    size = max(1, 2**22 // (windows.n_timesteps * windows.n_channels))
    for start in range(0, len(index), size):
        block = windows.take(index[start : start + size])
        x = block.x if block.observed is None else block.x[block.observed]
        moments = moments.merged(Moments.of(x.reshape(1, -1).astype(np.float64)))
    return float(moments.spread[0]) if moments.number[0] else 1.0
