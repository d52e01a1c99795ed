"""Random draws of one thread from generators of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class OwnDraws(TorchDispatchMode):
    """Context in which all that this thread draws comes from newly seeded generators.

    Layers initialise themselves from torch's global generator, which all threads share. In this
    context they draw the same numbers as after ``torch.manual_seed(seed)``, and the global
    generator is neither read nor moved. Other threads draw as before.

    Parameters
    ----------
    seed : int
        Seed of one generator per device.

    Raises
    ------
    NotImplementedError
        In the context, for an operation of torch that draws and takes no generator.

    Examples
    --------
    >>> import torch
    >>> with OwnDraws(0):
    ...     first = torch.nn.Linear(2, 2).weight
    >>> torch.randn(3).shape  # draws elsewhere change nothing
    torch.Size([3])
    >>> with OwnDraws(0):
    ...     bool((torch.nn.Linear(2, 2).weight == first).all())
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run one operation; one that draws gets a generator, unless the caller passed one."""
        kwargs = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None:
            func = _taking_a_generator(func)
            kwargs["generator"] = self._generator(args, kwargs)
        return func(*args, **kwargs)

    def _generator(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Generator:
        """Return the generator of the device that an operation draws on."""
        like = next((value for value in args if isinstance(value, torch.Tensor)), None)
        device = torch.device(kwargs.get("device") or (like.device if like is not None else "cpu"))
        if device.type == "meta":  # nothing is drawn there
            device = torch.device("cpu")
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self.seed)
        return self._generators[device]


def _taking_a_generator(func: Any) -> Any:
    """Return the overload of an operation that takes a generator."""
    if any(argument.name == "generator" for argument in func._schema.arguments):
        return func
    name = func._overloadname
    name = "generator" if name == "default" else f"{name}_generator"
    if name not in func.overloadpacket.overloads():
        raise NotImplementedError(
            f"{func} draws random numbers and takes no generator, and a net is initialised from"
            " its own seed: draw with torch.randn or torch.rand, or in place, as layers do."
        )
    return getattr(func.overloadpacket, name)
