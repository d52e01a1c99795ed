"""Shared parameters of the estimators, and their place in each docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)

# Parameters that several estimators have, with one meaning. Defaults come from the signatures.
_PARAMETERS = """
embedding_dim : int
    Width of the embedding: the number of values that represent a window.
encoder_hidden_dim : int
    Width of the encoder's residual blocks.
encoder_depth : int
    Number of residual blocks before the last block, which widens to `embedding_dim`. Their
    dilations are 1, 2, 4, ...; a depth of 10 gives the published eleven blocks.
pooling : {"max", "mean"}
    How the encoder pools its output over time.
time_varying_dim : int
    Width of the time-varying part: values that the encoder estimates for each step, and that the
    decoder reads beside the embedding. They are not part of the embedding. 0 leaves them out.
time_varying_pool : int
    Number of consecutive time steps that share one value of the time-varying part.
init_kernel_size : int
    Kernel size of the convolutions that estimate the initial condition, in steps; odd.
init_dilation : int
    Dilation of the second convolution that estimates the initial condition, in steps.
init_hidden_dim : int
    Width between the two convolutions that estimate the initial condition.
shared_encoder : bool
    Whether the initial condition is estimated from the encoder's output of each step instead of
    the signal (an ablation of the paper).
gru_num_layers : int
    Number of layers of the decoder, a GRU.
gru_hidden_dim : int
    Width of the decoder's layers.
observation : {"mlp", "linear"}
    Map from the decoder's state to the signal: two layers (published code) or one (paper).
layer_norm : {"everywhere", "embedding", "none"}
    Where the encoder's layer normalisation acts: in the loss and the embedding, in the embedding
    alone (so it is never trained), or nowhere.
representation_dropout : float
    Dropout probability of the encoder's output in training.
n_heads : int
    Number of attention heads of each transformer block; a divisor of `embedding_dim`.
loss_reduction : {"mean", "published"}
    "mean" averages the loss over the batch. "published" divides that mean by the batch size once
    more, as the published code does.
max_epochs : int
    Number of passes through the training windows.
lr : float
    Learning rate of AdamW. The one-cycle schedule rises to this value.
schedule : {"one_cycle", "constant"}
    Schedule of the learning rate. "one_cycle" rises to `lr` and falls again, with one step per
    batch. "constant" keeps the learning rate at `lr`.
betas : pair of float or None
    Decay rates of AdamW's running averages of the gradient and of its square. None means
    (0.9, 0.999). The one-cycle schedule sets the first rate itself and needs None.
weight_decay : float
    Decoupled weight decay of AdamW.
batch_size : int
    Number of windows per training step.
gradient_clip_value : float or None
    Largest absolute value of each element of the gradient; larger ones are clipped. None does not
    clip.
validation_fraction : float
    Fraction of the samples that is held out to select the weights, or of the groups if `fit` is
    given `groups`. 0 holds out none; without validation the last weights are kept.
validation_every : int
    Number of epochs from one validation to the next.
deterministic_validation : bool
    Whether every validation repeats the same random draws and applies no dropout, so that losses
    of different epochs can be compared. False draws anew, as the published code does.
select : {"trailing_mean", "min_val", "last"}
    Epoch whose weights are kept. "trailing_mean" is the rule of the published code: an epoch's
    weights are kept if the mean of the last five validation losses is at most the validation loss
    of the epoch kept before. With fewer than five epochs it keeps the last weights. "min_val" is
    the epoch of the lowest validation loss (paper), "last" the last epoch.
head_hidden_dim : int or None
    Width of the hidden layer of the head; None makes the head one linear map.
class_weight : "balanced", dict or None
    Weights of the classes in the loss, as in scikit-learn: "balanced" weights each class by its
    inverse frequency, a dictionary maps labels to weights, and None weights all classes alike.
unlabeled_label : int, str or None
    Value of `y` that marks a sample without a label, which `fit` refuses:
    :class:`~sklearn_pulse.evaluation.LabeledSubsetClassifier` around the classifier leaves these
    samples out. The mark -1 is a class all the same if the labels are -1 and 1 and nothing else, or
    if another label is negative too. None makes every label a class.
patience : int or None
    Number of validations in a row after which training stops, if none of them lowers the validation
    loss by 0.01 % or more; None trains for all epochs.
bag_pooling : {"mean", "max"}
    How the embeddings of a bag's windows are pooled into the embedding of the bag.
checkpoint_dir : path-like or None
    Folder of checkpoints, with one subfolder per run: a combination of parameters, callbacks,
    data and starting weights. A leading ``~`` is the user's home. A checkpoint is written after
    each epoch, and an interrupted `fit` that is repeated resumes there and ends with the same bits,
    callbacks included. Needs a `random_state`: an integer, or a RandomState that is in the same
    state again when `fit` is repeated. None writes no checkpoints.
precision : {"float32", "bfloat16"}
    Number format of the computation. "bfloat16" computes under autocast; weights and embeddings
    stay float32. On a CPU without instructions for it (AVX-512 or AMX), it is many times slower
    than "float32".
compile : bool
    Whether to compile the encoder by :func:`torch.compile`. It takes effect where the encoder is
    called as a whole: in `transform`, and in the training of methods whose loss reads embeddings.
    Pickles and saved models are not compiled; their embeddings differ by rounding.
device : str or torch.device
    Device of the computation: "cpu", "cuda", "cuda:1" and so on, or "mps" (a GPU of Apple's, which
    no test of this package runs on); "auto" is CUDA if available, else the CPU. A network stays on
    the device of `fit`; features without a network are computed on the present one.
num_threads : int or None
    Number of torch threads during the computation, at most 1024; None leaves the setting alone.
    The same number of threads repeats results to the bit.
distributed : bool or "auto"
    Whether `fit` trains in several processes, launched by ``torchrun``, each of which computes a
    share of every batch. All processes pass the same data and end with the same fitted estimator;
    the number of processes changes the rounding alone. "auto" does so where several processes were
    launched; True is an error elsewhere. On CUDA each process takes the device of its
    ``LOCAL_RANK``.
input_layout : {"ntc", "nct"}
    Order of a window's axes: "ntc" has time before channels; "nct" has channels before time, as
    in sktime, aeon and braindecode.
sampling_rate : float or None
    Sampling rate of the windows, in Hz. The fitted estimator refuses windows that are known to
    have another rate. None takes the rate that lazy windows carry, if they do.
channel_names : sequence of str or None
    Names of the channels, in their order. The fitted estimator refuses windows that are known to
    have other channels or another order. None takes the names that lazy windows carry.
callbacks : list of skorch callbacks or None
    Callbacks of the training, or functions without arguments that make a callback for each fit.
    `fit` uses copies, which are found in ``net_.callbacks_``; an attribute that cannot be copied,
    such as a writer of logs, is shared. scikit-learn cannot clone a callback with such an
    attribute: pass a function that makes it. An `LRScheduler` replaces the schedule of the learning
    rate; a rate that a callback sets by itself lasts until the schedule sets the next one. A search
    tries whole lists, such as ``{"callbacks": [None, [EarlyStopping(patience=3)]]}``. The net
    computes a loss and no predictions, so `EpochScoring` needs a function of (net, X, y).
warm_start : bool
    Whether `fit` starts from the weights of the last fit, with a new schedule. ``history_`` goes
    on where the last fit ended.
random_state : int, RandomState instance or None
    Seed of everything random: initial weights, batches, validation split and draws of training.
verbose : int
    Amount of output in training: 0 prints nothing, 1 one line per epoch, 2 adds a progress bar.
"""

# Parameters that methods of several estimators have, with one meaning.
_METHOD_PARAMETERS = """
X : array-like of shape (n_samples, n_timesteps, n_channels)
    Windows. 2-D data is univariate, of shape (n_samples, n_timesteps); 4-D data are bags of
    windows, of shape (n_samples, n_windows, n_timesteps, n_channels).
sampling_rate : float or None
    Sampling rate of `X`, in Hz, to be compared with that of `fit`. None compares what `X` carries,
    if it carries a rate.
channel_names : sequence of str or None
    Names of the channels of `X`, to be compared with those of `fit`. None compares what `X`
    carries, if it carries names.
groups : array-like of shape (n_samples,)
    Recording or subject of each sample. The training and the validation part share no group.
X_val : array-like
    Samples to validate on, in the layout of `X`. If they are given, `fit` holds out nothing of `X`,
    whatever `validation_fraction` is.
y_val : array-like
    Labels of `X_val`.
"""

_HEADING = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def complete_docstring(class_: _Class) -> _Class:
    """Fill the shared parameters and attributes into the docstring of a class.

    The class documents the parameters that are its own, and those whose meaning it changes. The
    others are taken from its base classes or from the table of shared parameters, in the order of
    the signature and with its defaults. Attributes of the base classes follow its own attributes.
    Shared parameters of its public methods, such as `X`, are filled in as well. Subclasses of
    :class:`WindowEmbedder` are completed when they are defined; any other class may use this
    function as a decorator.

    Parameters
    ----------
    class_ : type
        Class to document. Without a docstring it stays as it is: ``python -OO`` removes them all.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    TypeError
        If a parameter is described nowhere, or the docstring describes something that is no
        parameter.

    Examples
    --------
    >>> from sklearn_pulse.base import complete_docstring
    >>> @complete_docstring
    ... class Method:
    ...     '''A method with a shared parameter.'''
    ...
    ...     def __init__(self, *, max_epochs=100): ...
    >>> "max_epochs : int, default=100" in Method.__doc__
    True
    """
    if class_.__doc__ is not None:
        class_.__doc__ = _completed_class(class_)
    for name, method in vars(class_).items():
        if inspect.isfunction(method) and name[0] != "_" and method.__doc__ is not None:
            method.__doc__ = _completed_method(class_, name, method)
    return class_


def described_parameters(class_: type) -> dict[str, str]:
    """Return the entries of the Parameters section of a class by the names of the parameters."""
    return _entries(_sections(class_.__doc__).get("Parameters", ""))


def _completed_class(cls: type) -> str:
    """Return the docstring of a class with the parameters and attributes that it leaves out."""
    sections = _sections(cls.__doc__)
    bases = [_sections(base.__doc__) for base in cls.__mro__[1:]]
    own = _entries(sections.get("Parameters", ""))
    known = _first_of([*_each(bases, "Parameters"), _entries(_PARAMETERS)])
    parameters = _parameters_of(cls)
    _check_described(cls.__name__, own, known, parameters)
    attributes = _first_of(_each([sections, *bases], "Attributes"))
    return _joined(
        sections,
        Parameters=_filled(own, known, parameters) or sections.get("Parameters", ""),
        Attributes="\n".join(attributes.values()),
    )


def _completed_method(cls: type, name: str, method: Callable[..., Any]) -> str:
    """Return the docstring of a method with the shared parameters that it leaves out."""
    sections = _sections(method.__doc__)
    inherited = [getattr(base, name, None) for base in cls.__mro__[1:]]
    bases = [_sections(getattr(function, "__doc__", None)) for function in inherited]
    own = _entries(sections.get("Parameters", ""))
    known = _first_of([*_each(bases, "Parameters"), _entries(_METHOD_PARAMETERS)])
    return _joined(sections, Parameters=_filled(own, known, _parameters_of(method)))


def _sections(doc: str | None) -> dict[str, str]:
    """Split a docstring into sections by their headings; the text before them is called ""."""
    first, *others = _HEADING.split(inspect.cleandoc(doc or ""))
    return {"": first, **dict(zip(others[::2], others[1::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """Split a section into its entries by their names."""
    entries = [entry.rstrip() for entry in re.split(r"\n+(?=\S)", section.strip())]
    return {re.split(r"\s*:|\n", entry, maxsplit=1)[0]: entry for entry in entries if entry}


def _each(docs: Iterable[Mapping[str, str]], heading: str) -> list[dict[str, str]]:
    """Return the entries of one section of several docstrings."""
    return [_entries(sections.get(heading, "")) for sections in docs]


def _first_of(sources: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge entries; where several sources have an entry, the first source wins."""
    merged: dict[str, str] = {}
    for entries in sources:
        merged |= {name: entry for name, entry in entries.items() if name not in merged}
    return merged


def _parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or method by the names that a docstring gives them."""
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    parameters = inspect.signature(function).parameters
    return {
        stars.get(parameter.kind, "") + name: parameter
        for name, parameter in parameters.items()
        if name != "self"
    }


def _check_described(
    name: str,
    own: Mapping[str, str],
    known: Mapping[str, str],
    parameters: Mapping[str, inspect.Parameter],
) -> None:
    """Raise unless exactly the parameters are described."""
    missing = [parameter for parameter in parameters if parameter not in {*own, *known}]
    if missing:
        raise TypeError(
            f"{name} describes its parameters {missing} nowhere: add them to the Parameters section"
            " of its docstring, one entry per parameter. Only shared parameters are filled in."
        )
    unknown = [parameter for parameter in own if parameter not in parameters]
    if unknown and parameters:  # a base without parameters describes those of its subclasses
        raise TypeError(
            f"the docstring of {name} describes {unknown}, which are no parameters of __init__:"
            " give each parameter an entry of its own, at the indentation of the others."
        )


def _filled(
    own: Mapping[str, str],
    known: Mapping[str, str],
    parameters: Mapping[str, inspect.Parameter],
) -> str:
    """Return a section with all described parameters, in the order of the signature."""
    entries = [
        own[name] if name in own else _with_default(known[name], parameter)
        for name, parameter in parameters.items()
        if name in own or name in known
    ]
    return "\n".join(entries)


def _with_default(entry: str, parameter: inspect.Parameter) -> str:
    """Return a shared entry with the default that the signature has."""
    head, *description = entry.split("\n")
    head = head.partition(", default=")[0]
    default = parameter.default
    if default is not inspect.Parameter.empty:
        text = f'"{default}"' if isinstance(default, str) else repr(default)
        head = f"{head}, default={text}"
    return "\n".join([head, *description])


def _joined(sections: Mapping[str, str], **replaced: str) -> str:
    """Return a docstring of the sections, with some replaced; new ones come before the others."""
    start = {"": sections[""], **{name: text for name, text in replaced.items() if text}}
    order = start | {name: text for name, text in sections.items() if name not in start}
    blocks = [
        f"{name}\n{'-' * len(name)}\n{text.rstrip()}" if name else text.rstrip()
        for name, text in order.items()
    ]
    return "\n\n".join(blocks) + "\n"
