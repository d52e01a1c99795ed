"""Methods to save and load a fitted transformer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from torch import Tensor

from ._hub import local_folder, upload
from ._load import load
from ._save import save


class PretrainedMixin:
    """Mixin to save a fitted transformer in a folder, and to load it without executing files.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import RandomEncoderTransformer
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     RandomEncoderTransformer(embedding_dim=16).fit(X).save_pretrained(home)
    ...     type(PretrainedMixin.from_pretrained(home, device="cpu")).__name__
    'RandomEncoderTransformer'
    """

    n_timesteps_in_: int
    input_layout: str | None
    # Whether weights may come from elsewhere, without the number of time steps they were fitted on.
    _length_may_be_unknown = False
    # Parameters that hold a fitted transformer, which is stored too, and the class of each.
    _holds: Mapping[str, type] = {}
    _unstored: tuple[str, ...] = ()  # fitted attributes that :meth:`_restore` makes from weights

    def _weights(self) -> dict[str, Tensor]:
        """Return what a file of weights holds: tensors on the CPU, by name."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} names no weights to store.")

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        """Become fitted by stored weights; ValueError or RuntimeError if they do not fit."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} restores no weights.")

    def _restore_training(
        self,
        history: Sequence[dict[str, Any]],
        selected_epoch: int | None,
        n_earlier: int | None,
    ) -> None:
        """Take over the record of the training; `n_earlier` is None if the file does not say it."""

    def _training_record(self) -> tuple[list[dict[str, Any]], int | None, int]:
        """Return the history, the index of the selected epoch, and the number of earlier epochs."""
        return [], None, 0

    def _held(self) -> dict[str, Any]:
        """Return the fitted transformers that parameters hold, by the name of the parameter."""
        return {}

    def _hold(self, name: str, transformer: Any) -> None:
        """Let a parameter hold a transformer that was read from a file."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} holds no transformer.")

    @property
    def _layout(self) -> str:
        """Order of the axes of a window."""
        return self.input_layout or "ntc"

    def _probe_length(self) -> int:
        """Return the number of time steps of a window that tests whether embeddings are finite."""
        return self.n_timesteps_in_

    def _check_unchanged(self, twin: Any) -> None:
        """Raise unless the parameters are those of `fit`, and those of `twin` equal them.

        Parameters
        ----------
        twin : transformer
            The unfitted transformer whose parameters are those that a file holds.
        """

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted transformer into a folder that can be shared.

        ``model.safetensors`` holds the weights. ``config.json`` holds the parameters, the other
        fitted attributes, the history without durations, and checksums. ``README.md`` is a model
        card with an empty licence. The folder is written completely or not at all.

        Parameters
        ----------
        folder : path-like
            A new or empty folder, or a folder with an earlier saved model, which is replaced. A
            leading ``~`` is the user's home.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        FileExistsError
            If the folder holds other files than a saved model, or a model card that was edited.
        ValueError
            If a parameter that shapes the net was changed after `fit`, a weight or the embedding of
            a plain sine is NaN or infinite, or the encoder is another transformer, which only a
            pickle can hold.

        Warns
        -----
        UserWarning
            If a parameter cannot be stored in a file, such as callbacks or a `RandomState`. The
            loaded transformer has the default of this parameter.

        Notes
        -----
        `checkpoint_dir`, `compile`, `device`, `memory` and `num_threads` belong to a machine and
        are not written. The settings of `set_output` and of metadata routing are not written
        either.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from sklearn_pulse.baselines import RandomEncoderTransformer
        >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
        >>> fitted = RandomEncoderTransformer(embedding_dim=16, random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as home:
        ...     fitted.save_pretrained(os.path.join(home, "encoder"))
        ...     sorted(os.listdir(os.path.join(home, "encoder")))
        ['README.md', 'config.json', 'model.safetensors']
        """
        save(self, folder)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: Any = "auto",
        revision: str | None = None,
    ) -> Self:
        """Read a fitted transformer from a folder, without importing or executing its content.

        Parameters
        ----------
        folder : path-like
            A folder that :meth:`save_pretrained` has written. A string that is no folder is the
            name of a model of :mod:`sklearn_pulse.pretrained`, such as "eeg-174hz", or
            "organisation/name", a repository of the Hugging Face Hub, which needs the extra
            ``hub``.
        device : str or torch.device, default="auto"
            Parameter `device` of the loaded transformer, which may differ from the device of its
            training. A transformer without this parameter computes on the CPU.
        revision : str or None, default=None
            Branch, tag or commit of the repository; None means its main branch.

        Returns
        -------
        transformer
            Fitted transformer of this class. If the method is called on a base class, the
            transformer is of the class that was saved.

        Raises
        ------
        FileNotFoundError
            If the folder or a file is missing, or the name is neither a folder, nor a model of the
            package, nor a repository.
        ValueError
            If a file is damaged, was changed, was written by another program, has a later format,
            belongs to another class, does not fit the other files, or embeds a plain sine as
            numbers that are not finite; or for a `revision` of what is no repository.

        Notes
        -----
        The folder may come from a stranger: time and memory are bounded by the size of its files,
        and `SECURITY.md` says by how much.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from sklearn_pulse import PulseTransformer
        >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
        >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=1, random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as home:
        ...     pulse.save_pretrained(os.path.join(home, "pulse"))
        ...     restored = PulseTransformer.from_pretrained(os.path.join(home, "pulse"))
        >>> bool(np.all(restored.transform(X) == pulse.transform(X)))
        True
        """
        with local_folder(folder, revision) as path:
            return load(cls, path, device)

    def push_to_hub(self, repo_id: str, *, private: bool | None = None) -> str:
        """Save the fitted transformer as a repository of the Hugging Face Hub.

        Parameters
        ----------
        repo_id : str
            Name of the repository, "organisation/name". It is made if it does not exist.
        private : bool or None, default=None
            Whether a new repository is private; None follows the settings of the organisation.

        Returns
        -------
        str
            Address of the commit.

        Raises
        ------
        ImportError
            If huggingface_hub, the extra ``hub``, is not installed.
        ValueError
            If the transformer cannot be saved, or `repo_id` is no name of a repository.

        Notes
        -----
        The account is that of huggingface_hub (``hf auth login``). The model card states no
        licence: fill it in there. The next push replaces the card, with what was filled in.

        Examples
        --------
        >>> pulse.push_to_hub("my-lab/wrist-pulse", private=True)  # doctest: +SKIP
        'https://huggingface.co/my-lab/wrist-pulse/commit/...'
        """
        return upload(self.save_pretrained, repo_id, private)
