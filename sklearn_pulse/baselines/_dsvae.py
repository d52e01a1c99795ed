"""DSVAE: variational autoencoder with one static latent and one dynamic latent per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from ..base import BaseSSLTransformer, check_integer, check_option, check_real, complete_docstring
from ..functional import gaussian_kl
from ..networks import SequentialLatents, SequentialVAE, SystemEncoder, mask_steps
from ..objectives import Objective

_KL_WEIGHT = {"weighted": 1e-5, "elbo": 1.0}
_WIDTHS = (
    "static_dim",
    "dynamic_dim",
    "posterior_hidden_dim",
    "prior_hidden_dim",
    "decoder_hidden_dim",
)


class Noise(NamedTuple):
    """Standard normal draws for the samples of one loss."""

    static: Tensor  # (batch, static_dim)
    dynamic: Tensor  # (n_timesteps, batch, dynamic_dim)


@complete_docstring
class DisentangledSequence(Objective):
    """Loss of DSVAE, its encoder replaced by the dilated convolutions (paper, Appendix C).

    Unobserved steps are left out: the recurrent networks and the loss read the observed steps of a
    window as if they followed one another.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    static_dim : int, default=64
        Width of the static latent.
    dynamic_dim : int, default=64
        Width of the dynamic latent of each step.
    loss : {"weighted", "elbo"}, default="weighted"
        The published loss, or that of the method's authors; see :class:`DSVAETransformer`.
    kl_weight : float or None, default=None
        Weight of the divergences of the latents from their priors. None means 1e-5 for "weighted"
        and 1 for "elbo".
    **model
        Other sizes of :class:`~sklearn_pulse.networks.SequentialVAE`.

    Examples
    --------
    >>> import torch
    >>> objective = DisentangledSequence(2, embedding_dim=16, encoder_depth=3)
    >>> x = torch.randn(4, 32, 2)
    >>> objective(x=x).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    encoder: SystemEncoder
    replayed = "whole"

    def __init__(
        self,
        n_channels: int,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        static_dim: int = 64,
        dynamic_dim: int = 64,
        loss: Literal["weighted", "elbo"] = "weighted",
        kl_weight: float | None = None,
        seed: int = 0,
        **model: Any,
    ) -> None:
        super().__init__(seed)
        self.loss = loss
        self.kl_weight = _KL_WEIGHT[loss] if kl_weight is None else kl_weight
        self.static_dim = static_dim
        self.dynamic_dim = dynamic_dim
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )
        self.model = SequentialVAE(
            n_channels, embedding_dim, static_dim=static_dim, dynamic_dim=dynamic_dim, **model
        )

    def forward(
        self, x: Tensor, observed: Tensor | None = None, noise: Noise | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        noise : Noise or None, default=None
            Draws for the observed steps in their order, followed by those for the other steps; None
            draws them.

        Returns
        -------
        Tensor, scalar
            The loss.
        """
        x = mask_steps(x, observed)  # the square of a huge value is infinite
        noise = self.draw_noise(x) if noise is None else noise
        embedding = self.encode(x, observed)
        lengths = None
        if observed is not None:
            x, lengths = _observed_first(x, observed)
        x = x.transpose(0, 1)
        latents = self.model(x, embedding, noise, lengths)
        if lengths is None:
            lengths = torch.full((x.shape[1],), len(x), device=x.device)
        counts = (torch.arange(len(x), device=x.device).unsqueeze(1) < lengths).unsqueeze(-1)
        error = ((latents.reconstruction - x).square() * counts).sum()
        divergence = self.divergence(latents, counts)
        if self.loss == "elbo":
            return (error + self.kl_weight * divergence) / x.shape[1]
        # The published code leaves out the constant of each dimension.
        n_dims = latents.static_mean.numel() + counts.sum() * self.dynamic_dim
        mean_error = error / (counts.sum() * x.shape[2])
        return mean_error + self.kl_weight * (divergence + 0.5 * n_dims)

    def draw_noise(self, x: Tensor) -> Noise:
        """Draw the noise of one loss; its shapes do not depend on the observed steps.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.

        Returns
        -------
        Noise
            Draws for the static and the dynamic latents.
        """
        batch, n_timesteps, _ = x.shape
        shapes = (batch, self.static_dim), (n_timesteps, batch, self.dynamic_dim)
        generator = self.generator(x.device)
        return Noise(*(torch.randn(s, generator=generator, device=x.device) for s in shapes))

    @staticmethod
    def divergence(latents: SequentialLatents, counts: Tensor) -> Tensor:
        """Sum the KL divergences of both latents from their priors over the batch.

        Parameters
        ----------
        latents : SequentialLatents
            Means and logarithms of the variances of the latents and of the dynamic latents' prior.
        counts : Tensor of bool, of shape (n_timesteps, batch, 1)
            Whether a step counts.

        Returns
        -------
        Tensor, scalar
            The sum.
        """
        zeros = torch.zeros_like(latents.static_mean)
        static = gaussian_kl(latents.static_mean, latents.static_logvar, zeros, zeros)
        dynamic = gaussian_kl(
            latents.dynamic_mean, latents.dynamic_logvar, latents.prior_mean, latents.prior_logvar
        )
        return static.sum() + (dynamic * counts).sum()


def _observed_first(x: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """Move the unobserved steps of each window to its end; count the observed steps."""
    order = torch.sort((~observed).to(torch.int8), dim=1, stable=True).indices
    return x.gather(1, order.unsqueeze(-1).expand_as(x)), observed.sum(1)


class DSVAETransformer(BaseSSLTransformer):
    """Embed windows by a disentangled sequential variational autoencoder (DSVAE).

    A static latent explains what does not change within a window; a dynamic latent per step, with a
    learnt autoregressive prior, explains the rest. As in the paper, the encoder of the static
    latent is PULSE's, whose pooled output is the embedding.

    Parameters
    ----------
    static_dim : int, default=64
        Width of the static latent.
    dynamic_dim : int, default=64
        Width of the dynamic latent of each step.
    posterior_hidden_dim : int, default=64
        Width of the recurrent networks that infer the dynamic latents.
    prior_hidden_dim : int, default=16
        Width of the recurrent network that is the prior of the dynamic latents.
    decoder_hidden_dim : int, default=64
        Width of the decoder's two hidden layers.
    loss : {"weighted", "elbo"}, default="weighted"
        "weighted" is the mean squared error plus the weighted divergences of the latents from their
        priors, summed over the batch and without their constants (published code); so the weight
        of the divergences grows with the batch and the window. "elbo" is the squared error of a
        window plus its weighted divergences, averaged over windows (the implementation that the
        paper starts from).
    kl_weight : float or None, default=None
        Weight of the divergences of the latents from their priors. None means 1e-5 for "weighted"
        and 1 for "elbo".

    References
    ----------
    Li and Mandt, "Disentangled Sequential Autoencoder", ICML 2018; "PULSE", ICML 2026, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import DSVAETransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> DSVAETransformer(embedding_dim=16, max_epochs=2, random_state=0).fit_transform(X).shape
    (20, 16)
    """

    _objective_class = DisentangledSequence
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        *_WIDTHS,
        "loss",
        "kl_weight",
    )

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        static_dim: int = 64,
        dynamic_dim: int = 64,
        posterior_hidden_dim: int = 64,
        prior_hidden_dim: int = 16,
        decoder_hidden_dim: int = 64,
        loss: Literal["weighted", "elbo"] = "weighted",
        kl_weight: float | None = None,
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        batch_size: int = 128,
        gradient_clip_value: float | None = 5.0,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: Select = "trailing_mean",
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
        self.static_dim = static_dim
        self.dynamic_dim = dynamic_dim
        self.posterior_hidden_dim = posterior_hidden_dim
        self.prior_hidden_dim = prior_hidden_dim
        self.decoder_hidden_dim = decoder_hidden_dim
        self.loss = loss
        self.kl_weight = kl_weight
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
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

    def _check_params(self) -> None:
        super()._check_params()
        for name in _WIDTHS:
            check_integer(name, getattr(self, name), 1)
        check_option("loss", self.loss, tuple(_KL_WEIGHT))
        if self.kl_weight is not None:
            check_real("kl_weight", self.kl_weight)
