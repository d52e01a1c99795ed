"""Real numbers from any container: arrays, frames, tensors and lists of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, ValuesView
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._groups import missing_mask, nan_where_masked
from ._panel import check_frames
from ._tables import (
    is_list,
    refuse_other_frame,
    refuse_panel,
    refuse_text_column,
    refuse_times,
    refuse_undivided,
    table_values,
)


def as_real_array(values: Any, name: str = "X") -> NDArray[Any]:
    """Return real numbers as an array, without a copy if they are an array already.

    Parameters
    ----------
    values : array-like, tensor or frame
        The numbers. Masked entries, and pandas' NA, become NaN.
    name : str, default="X"
        Name of the values in error messages.

    Returns
    -------
    ndarray or memory map
        Values of a boolean, integer or float dtype. Numbers held as objects become float64.

    Raises
    ------
    TypeError
        For nested and multi-indexed frames, sparse matrices, mappings, iterators, paths, strings
        and objects.
    ValueError
        For times, ragged lists, complex numbers, and frames in a list that do not fit.
    """
    if sp.issparse(values):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required: {name}.toarray()."
        )
    values = given = of_tensor(values)
    refuse_other_frame(values, name)
    refuse_undivided(values, name)
    refuse_panel(values, name)
    _refuse_collection(values, name)
    # Numpy drops the masks of arrays in a list, and of a Dask array's blocks.
    if is_list(values):
        check_frames(values, name)
        values = [_unmasked(x) for x in values]
        if values and all(x is None for x in values):  # NumPy would read numbers that are missing
            raise _absent(values, name)
    refuse_times(values, name)
    refuse_text_column(values, name)
    values = nan_where_masked(table_values(values))
    try:
        data = values if isinstance(values, np.memmap) else np.asarray(values)
    except ValueError as error:
        _refuse_entries(given, name)
        if isinstance(values, list) and any(x is None for x in values):
            raise _absent(values, name) from error
        raise ValueError(
            f"{name} is ragged ({error}): its parts differ in length. A recording is one array of"
            " shape (n_timesteps, n_channels). Windows have one length: cut them with"
            " sklearn_pulse.windows.sliding_windows(recordings, length, stride), or pad them with"
            " NaN, as sklearn_pulse.panel does."
        ) from error
    if data.dtype == object:
        _refuse_entries(given, name)
    return _as_real(data, name)


def _absent(values: list[Any], name: str) -> ValueError:
    """Return the error of a list in which an entry is None, as a reader may have returned."""
    absent = next(i for i, x in enumerate(values) if x is None)
    return ValueError(f"{name}[{absent}] is None: leave it out, or pass an array of its values.")


def _refuse_entries(values: Any, name: str) -> None:
    """Raise for an entry of a list that is no array of numbers, with its name."""
    for i, value in enumerate(values if is_list(values) else ()):
        entry = f"{name}[{i}]"
        refuse_other_frame(value, entry)
        if not isinstance(value, str):
            _refuse_collection(value, entry)
        refuse_text_column(value, entry)


def _unmasked(values: Any) -> Any:
    """Return an entry of a list, and the entries of lists in it, without masks."""
    if is_list(values) and len(values) and not isinstance(values[0], Number):
        return [_unmasked(x) for x in values]
    return nan_where_masked(table_values(of_tensor(values)))


def of_tensor(values: Any) -> Any:
    """Return a tensor of torch, which is not imported here, as an array; else the values."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def _refuse_collection(values: Any, name: str) -> None:
    """Raise for an object that only leads to arrays or frames, such as a mapping or a reader."""
    kind = type(values).__name__
    if isinstance(values, Mapping):
        raise TypeError(
            f"{name} is a {kind} with the keys {list(values)[:8]}: pass one of its values, or, if"
            f" each holds a recording, list({name}.values())."
        )
    if hasattr(values, "array_keys"):  # a group of Zarr, which numpy takes for an empty array
        raise TypeError(
            f"{name} is a {kind} with the arrays {list(values.array_keys())[:8]}: pass one of them,"
            f" {name}[key], or, if each holds a recording, a list of them."
        )
    if hasattr(values, "get_data"):  # Raw or Epochs of MNE, of which the latter are an Iterator
        raise TypeError(
            f"{name} is a {kind}: pass what its get_data() returns, as an array with channels first"
            " (input_layout='nct')."
        )
    _refuse_wfdb(values, name)
    if isinstance(values, Iterator):
        raise TypeError(f"{name} is a {kind}, which can be read once only: pass list({name}).")
    if isinstance(values, ValuesView):  # of a dict
        raise TypeError(f"{name} is a {kind}: pass list({name}).")
    if isinstance(values, str | os.PathLike):
        raise TypeError(
            f"{name} is {values!r}: if it is a file, read it first; a folder of .npy files opens by"
            " sklearn_pulse.windows.open_recordings(folder)."
        )
    if hasattr(values, "get_group"):  # groups of a frame of pandas
        raise TypeError(
            f"{name} is a {kind}: pass [frame[channels] for _, frame in {name}], where channels"
            " lists the columns that are signals, without the key of the groups; a frame with a"
            " MultiIndex needs no groupby."
        )


def _refuse_wfdb(values: Any, name: str) -> None:
    """Raise for what the functions of wfdb return."""
    kind = type(values).__name__
    if isinstance(values, tuple) and any(isinstance(part, Mapping) for part in values):
        raise TypeError(
            f"{name} is a tuple of values and a dict, as wfdb.rdsamp returns: pass {name}[0], the"
            " values."
        )
    if getattr(values, "e_p_signal", None) is not None:
        raise TypeError(
            f"{name} is a {kind} whose signals have samples of their own: read it by"
            " wfdb.rdrecord(path, smooth_frames=True), and pass its p_signal."
        )
    if not hasattr(values, "p_signal"):
        return
    if values.p_signal is None:
        raise TypeError(
            f"{name} is a {kind} without physical values: read it by wfdb.rdrecord(path,"
            " physical=True), and pass its p_signal."
        )
    raise TypeError(f"{name} is a {kind}: pass {name}.p_signal, its values.")


def _as_real(data: NDArray[Any], name: str) -> NDArray[Any]:
    if data.dtype.kind in "fiub":
        return data
    if data.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {data.dtype}. Pass the real and the"
            " imaginary part as two channels."
        )
    if data.dtype.kind == "O":
        text = next((x for x in data.flat if isinstance(x, str | bytes)), None)
        if text is not None:
            raise ValueError(
                f"{name} holds {text!r}, which is no number: convert text to numbers, pass labels"
                " as y, and leave other text out."
            )
        # NumPy makes years or seconds of them.
        if any(isinstance(x, np.datetime64 | np.timedelta64) and x == x for x in data.flat):
            raise ValueError(
                f"{name} holds times among its numbers: drop them, or, in a frame of pandas, make"
                " them the index, whose gaps are then found."
            )
        if any(isinstance(x, np.ndarray | list | tuple) for x in data.flat):
            raise ValueError(
                f"{name} has entries that hold several values: pass a list of them,"
                f" {name}.to_list(), or, of a frame, {name}[column].to_list()."
            )
        try:  # NumPy refuses pandas' NA, and makes a number of its NaT
            return np.where(missing_mask(data), np.nan, data).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name} has dtype object and does not hold numbers ({error}): make every entry a"
                " real number."
            ) from error
    if data.dtype.names is not None:  # as numpy.genfromtxt(path, names=True) gives
        raise TypeError(
            f"{name} is a structured array with the fields {', '.join(data.dtype.names)}: pass the"
            " signals as channels, numpy.lib.recfunctions.structured_to_unstructured("
            f"{name}[fields])."
        )
    raise TypeError(f"{name} has dtype {data.dtype}: convert it to float32 or another real dtype.")
