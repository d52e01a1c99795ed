"""Training steps that a GPU replays as one graph, instead of taking a launch per kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.modules import module as torch_module

from .._warnings import warn_user
from ._iterator import Batch

Results = TypeVar("Results")

# Steps of one kind that run as usual before a step is captured. They set up what kernels need, and
# find errors of the loss. A capture takes about as long as they do.
_EAGER_STEPS = 10

# One lock for the whole process: captures of several threads would meet in the allocator.
_CAPTURING = threading.Lock()

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = [f"_global{hooks}" for hooks in _HOOKS]  # of all modules of the program
_PLAIN = (bool, int, float, str)


class CapturedStep:
    """Loss and gradient of a batch, replayed as one CUDA graph once enough batches were alike.

    A training step consists of hundreds of kernels, most of which end before the process has
    launched the next. A graph launches them all at once. It computes the same numbers: the kernels
    are those of the step that it was captured from, and the objective's generator moves on as it
    would in that step.

    A graph repeats kernels, not Python. So a step runs as usual, kernel by kernel, where anything
    differs that Python may have read: the shapes of the batch, the weights' places in memory, which
    of them are trained, and every number that a module holds. Every step runs so if a module or a
    weight has hooks, or if the batch is to have a gradient.

    Parameters
    ----------
    module : torch.nn.Module
        The objective, on a CUDA device.
    step : callable
        Function that takes a batch, adds the gradient of its loss to the weights, and returns the
        loss without a gradient.
    """

    def __init__(self, module: Any, step: Callable[[Batch], Tensor]) -> None:
        self.module = module
        self.step = step
        self._shapes: Any = None  # of the largest batch so far: such batches may be replayed
        self._parts: list[dict[str, Any]] = []
        self._kind: Any = None
        self._n_alike = 0
        self._recording: _Recording | None = None
        self._fails = False

    def __call__(self, batch: Batch) -> Tensor:
        """Compute the gradient of a batch, which replaces the weights' own; return the loss."""
        shapes = [(name, value.shape, value.dtype) for name, value in batch.items()]
        # A smaller batch, such as the last of an epoch, may come first in a fit that is resumed.
        if self._shapes is None or shapes[0][1].numel() > self._shapes[0][1].numel():
            self._shapes, self._kind = shapes, None
        # A callback may ask for the gradient of a batch.
        is_usual = shapes == self._shapes and not self._fails
        is_usual = is_usual and not any(value.requires_grad for value in batch.values())
        kind = self._kind_now(batch) if is_usual else None
        if kind is None:
            return self.step(batch)
        if kind != self._kind:
            self._parts = [vars(part) for part in self.module.modules()]
            self._kind, self._n_alike, self._recording = self._kind_now(batch), 0, None
        self._n_alike += 1
        if self._recording is None and self._n_alike > _EAGER_STEPS:
            self._recording = self._record(batch)
        return self.step(batch) if self._recording is None else self._recording.replay(batch)

    def _kind_now(self, batch: Batch) -> list[Any] | None:
        """Return all that Python may read in a step; None if a graph cannot repeat the step."""
        module = self.module
        if module.replayed == "never" or (module.replayed == "whole" and "observed" in batch):
            return None
        if any(getattr(torch_module, hooks) for hooks in _GLOBAL_HOOKS):
            return None
        own = vars(module)
        # The generator itself is held, since a later generator may get the address of a lost one.
        kind: list[Any] = [module.generator(next(iter(batch.values())).device)]
        for part in self._parts:
            if any(part[hooks] for hooks in _HOOKS):
                return None
            if part is own and not module.reads_epoch:
                part = {name: value for name, value in part.items() if name != "epoch"}
            kind += [value for value in part.values() if type(value) in _PLAIN]
            kind += part["_modules"].values()
            for tensor in (*part["_parameters"].values(), *part["_buffers"].values()):
                if tensor is None:
                    continue
                if tensor._backward_hooks or tensor._post_accumulate_grad_hooks:
                    return None
                kind += [tensor.data_ptr(), tensor.requires_grad]
        return kind

    def _record(self, batch: Batch) -> _Recording | None:
        """Capture a step; None, with a warning, if CUDA cannot."""
        device = next(iter(batch.values())).device
        state = self.module.generator(device).get_state()
        try:
            return _Recording(self.module, self.step, batch)
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # which spoilt the capture
                raise error.__context__ from None
            self._fails = True
            self.module.set_generator_state(state, device)  # in a new generator
            self.module.zero_grad()
            warn_user(
                "CUDA could not capture a training step, so the rest of this training launches"
                f" every kernel by itself, which is slower. CUDA says: {error}"
            )
            return None


class _Recording:
    """A captured step, with the tensors that it reads and writes."""

    def __init__(self, module: Any, step: Callable[[Batch], Tensor], batch: Batch) -> None:
        self.module = module
        self.batch = {name: value.clone() for name, value in batch.items()}
        generator = module.generator(next(iter(batch.values())).device)
        self.run, results = _capture(lambda: self._compute(step), generator)
        self.loss, self.gradients, self.kept = results

    def _compute(self, step: Callable[[Batch], Tensor]) -> tuple[Tensor, list[Any], list[Any]]:
        """Return the loss of the batch that is kept, the gradient, and what else is kept of it."""
        self.module.zero_grad()  # so that kernels write a gradient, and do not add to one
        loss = step(self.batch)
        gradients = [weight.grad for weight in self.module.parameters()]
        return loss, gradients, [getattr(self.module, name) for name in self.module.keeps]

    def replay(self, batch: Batch) -> Tensor:
        """Compute the gradient of a batch of the same kind; return the loss."""
        for name, value in batch.items():
            self.batch[name].copy_(value)
        self.run()
        # Copies, since callbacks may keep them, and the next replay overwrites its own.
        gradients, kept = _copied(self.gradients), _copied(self.kept)
        for weight, gradient in zip(self.module.parameters(), gradients, strict=True):
            weight.grad = gradient
        for name, tensor in zip(self.module.keeps, kept, strict=True):
            setattr(self.module, name, tensor)
        return self.loss.clone()


def _copied(tensors: list[Tensor | None]) -> list[Tensor | None]:
    """Copy tensors, all by one kernel; None stays None."""
    copies = [None if tensor is None else torch.empty_like(tensor) for tensor in tensors]
    given = [tensor for tensor in tensors if tensor is not None]
    if given:
        torch._foreach_copy_([copy for copy in copies if copy is not None], given)
    return copies


def _capture(
    compute: Callable[[], Results], generator: torch.Generator
) -> tuple[Callable[[], None], Results]:
    """Capture the kernels of a function without running them; return a replay and the result.

    Each replay runs the kernels, which write into the tensors of the result.
    """
    graph, device = torch.cuda.CUDAGraph(), generator.device
    if hasattr(graph, "register_generator_state"):  # later versions of torch find it themselves
        graph.register_generator_state(generator)
    usual, stream = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    current = torch.cuda.current_device()
    try:
        # Other threads of the program may use the device meanwhile.
        with _CAPTURING, torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            results = compute()
    except RuntimeError:
        # Torch leaves its stream, and a state in which its own generator refuses to draw.
        torch.cuda.set_stream(usual)
        torch.cuda.set_device(current)
        default = torch.cuda.default_generators[usual.device.index]
        default.graphsafe_set_state(default.clone_state())
        raise
    return graph.replay, results
