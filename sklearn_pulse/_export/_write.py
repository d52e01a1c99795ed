"""Writing of a graph into a file, with a signature in it."""

from __future__ import annotations

import importlib
import json
import logging
import os
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._extras import command

FORMATS = ("onnx", "torch")
SIGNATURE = "signature"  # key of the signature in the metadata of a file
_EXTRA = command("export")


def check_packages(format: str) -> None:
    """Raise ImportError unless the packages that write a format are installed."""
    for name in ("onnx", "onnxscript") if format == "onnx" else ():
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(
                f"format='onnx' needs {name}: {_EXTRA}, or take format='torch'."
            ) from error


def program_of(graph: nn.Module, example: Tensor, any_length: bool) -> Any:
    """Return the program of a graph, for every batch size.

    Parameters
    ----------
    graph : torch.nn.Module
        Module from windows to a result.
    example : Tensor of shape (batch, n_timesteps, n_channels)
        Windows to run the graph on, at least two.
    any_length : bool
        Whether the program is for windows of every length.

    Returns
    -------
    torch.export.ExportedProgram
        The program.

    Raises
    ------
    ImportError
        If torch is too old.
    ValueError
        If the module does things that no graph holds.
    """
    if not hasattr(torch.compiler, "is_exporting"):
        raise ImportError("export needs torch 2.7 or later: pip install --upgrade torch.")
    dynamic = torch.export.Dim.DYNAMIC
    axes: dict[int, Any] = {0: dynamic, 1: dynamic} if any_length else {0: dynamic}
    try:
        with torch.no_grad(), _in_float32(), _quiet():
            return torch.export.export(
                graph.eval(), (example,), dynamic_shapes={"windows": axes}, strict=False
            )
    except Exception as error:  # torch raises errors of many kinds about what it cannot trace
        raise ValueError(
            f"torch.export cannot write it as a graph for every batch"
            f"{' and length' if any_length else ''} ({type(error).__name__}:"
            f" {str(error).strip().splitlines()[0]}). Serve it by save_pretrained and"
            " load_pretrained instead."
        ) from error


def write(
    program: Any, path: str | os.PathLike[str], format: str, signature: dict[str, Any]
) -> None:
    """Write a program into a file, completely or not at all.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        The program.
    path : path-like
        The file; an earlier file is replaced.
    format : {"onnx", "torch"}
        Format of the file.
    signature : dict
        What the input and the output are; it becomes a part of the file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(signature, indent=2)
    partial = path.with_name(f".{uuid.uuid4().hex}{path.suffix}")
    try:
        with _in_float32(), _quiet():
            if format == "onnx":
                _write_onnx(program, partial, signature, text)
            else:
                _write_torch(program, partial, text)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _write_torch(program: Any, path: Path, text: str) -> None:
    with open(path, "wb") as stream:  # by its name, torch would insist on the suffix .pt2
        torch.export.save(program, stream, extra_files={f"{SIGNATURE}.json": text})


def _write_onnx(program: Any, path: Path, signature: dict[str, Any], text: str) -> None:
    names = [signature[side]["name"] for side in ("input", "output")]
    written = torch.onnx.export(
        program, dynamo=True, verbose=False, input_names=names[:1], output_names=names[1:]
    )
    if written is None:
        raise ValueError("torch.onnx.export wrote no program: take format='torch'.")
    _name_axes(written.model, signature["input"]["dims"])
    written.model.metadata_props[SIGNATURE] = text
    written.save(path, external_data=False)


def _name_axes(model: Any, dims: list[Any]) -> None:
    """Give the axes of any size the names that the signature has."""
    windows = model.graph.inputs[0]
    names = {
        str(size): name
        for size, name in zip(windows.shape, dims, strict=True)
        if not isinstance(size, int)
    }
    values = [*model.graph.inputs, *(value for node in model.graph for value in node.outputs)]
    for value in values:
        for axis, size in enumerate(value.shape or ()):
            if str(size) in names:
                value.shape[axis] = names[str(size)]


def _in_float32() -> torch.autocast:
    """Return a context without autocast, whose casts would become a part of the graph."""
    return torch.autocast("cpu", enabled=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's remarks on itself, and on packages that are not needed, from the user."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
