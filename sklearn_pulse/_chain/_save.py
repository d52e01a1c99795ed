"""Saving of a chain into a folder."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._parameters import as_path
from .._persistence import PretrainedMixin
from .._persistence._files import (
    check_reads_back,
    check_replaceable,
    header,
    new_folder,
    undisturbed,
    write_model,
)
from .._persistence._hub import upload
from ._card import chain_card
from ._load import load_pretrained
from ._nodes import Writer


def save_pretrained(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted chain of steps into a folder that can be shared; nothing in it is code.

    The chain is a :class:`~sklearn.pipeline.Pipeline`, or a single step. Its steps may be
    transformers of this package that have ``save_pretrained``, the steps of
    :mod:`sklearn_pulse.preprocessing`, :class:`~sklearn_pulse.windows.SlidingWindows`, and of
    scikit-learn `StandardScaler`, `MinMaxScaler`, `RobustScaler`, `PCA`, `LogisticRegression`,
    `LinearSVC`, `SGDClassifier`, `RidgeClassifier`, `RidgeClassifierCV`, `LinearRegression`,
    `Ridge` and `RidgeCV`, also inside
    :class:`~sklearn_pulse.evaluation.LabeledSubsetClassifier` or `FrozenEstimator`.

    Parameters
    ----------
    model : Pipeline or estimator
        The fitted chain.
    folder : path-like
        A new or empty folder, or a folder with an earlier saved model, which is replaced. A leading
        ``~`` is the user's home.

    Raises
    ------
    TypeError
        If a file cannot hold a step.
    NotFittedError
        If a step is not fitted.
    FileExistsError
        If the folder holds other files than a saved model, or a model card that was edited.
    ValueError
        If a parameter of a transformer or a preprocessing step was changed after `fit`, if what was
        learnt is NaN or infinite, or if only a pickle can hold it, as for `MiniRocketTransformer`.

    Warns
    -----
    UserWarning
        If a parameter cannot be stored in a file, such as a `RandomState`.

    See Also
    --------
    load_pretrained : Read the chain.
    export : Write the computation of a chain as a graph, for programs without Python.

    Notes
    -----
    ``config.json`` describes the steps, ``model.safetensors`` holds the numbers of the steps that
    are no encoders, and each encoder has a folder of its own. `memory`, `n_jobs` and `verbose`
    belong to a machine and are not written. The settings of `set_output` come back, but for those
    of a transformer that is saved alone; requests of metadata routing do not. An
    ``SGDClassifier(average=True)`` predicts, but loses the weights that it averages:
    ``partial_fit`` needs a new `fit`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_pulse import RandomEncoderTransformer, load_pretrained, save_pretrained
    >>> X, y = np.random.default_rng(0).normal(size=(20, 32, 2)), np.arange(20) % 2
    >>> encoder = RandomEncoderTransformer(embedding_dim=16, random_state=0)
    >>> chain = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save_pretrained(chain, os.path.join(home, "chain"))
    ...     loaded = load_pretrained(os.path.join(home, "chain"))
    >>> bool(np.all(loaded.predict_proba(X) == chain.predict_proba(X)))
    True
    """
    if isinstance(model, PretrainedMixin):
        model.save_pretrained(folder)
        return
    folder = as_path("folder", folder)
    check_is_fitted(model)
    undisturbed(folder, lambda: check_replaceable(folder))
    with new_folder(folder) as partial:
        writer = Writer(partial)
        config = header(model) | {"chain": writer.node(model)}
        write_model(partial, config, writer.tensors, chain_card(config))
        check_reads_back(model, lambda path: load_pretrained(path, device="cpu"), partial, folder)
    writer.warn_of_dropped()


def push_to_hub(model: Any, repo_id: str, *, private: bool | None = None) -> str:
    """Save a chain, or a transformer, as a repository of the Hugging Face Hub.

    Parameters
    ----------
    model : Pipeline or estimator
        The fitted chain, as :func:`save_pretrained` takes it.
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
    TypeError, ValueError
        If the model cannot be saved.

    See Also
    --------
    load_pretrained : Read it: ``load_pretrained("organisation/name")``.

    Notes
    -----
    The account is that of huggingface_hub (``hf auth login``). The model card states no licence:
    fill it in there. The next push replaces the card, with what was filled in.

    Examples
    --------
    >>> from sklearn_pulse import push_to_hub
    >>> push_to_hub(chain, "my-lab/wrist-rhythm", private=True)  # doctest: +SKIP
    'https://huggingface.co/my-lab/wrist-rhythm/commit/...'
    """
    return upload(lambda folder: save_pretrained(model, folder), repo_id, private)
