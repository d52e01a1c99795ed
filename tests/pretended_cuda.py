"""A pretended CUDA device, whose tensors lie in the computer's memory and refuse those of the CPU.

Code runs here as on a GPU, with the branches that ask for one: what is moved to the device or made
there is on it, and so is what is computed from that. It shows neither the numbers of CUDA's kernels
nor their speed.
"""

import contextlib
import weakref
from functools import partial

import torch
import torch._dynamo  # reads CUDA's classes while it is loaded, so before they are replaced
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from sklearn_pulse._training import _captured

DEVICE = torch.device("cuda", 0)

# Functions that take tensors of both sides: copies (and what was copied before), indices, sizes of
# packed sequences.
MIXING = {
    "__deepcopy__",
    "__getitem__",
    "__set__",
    "__setitem__",
    "_has_compatible_shallow_copy_type",
    "_pack_padded_sequence",
    "_pad_packed_sequence",
    "copy_",
    "lstm",
}

# What waits for the device and reads from it, which no graph of kernels can hold.
READING = {
    "__bool__",
    "__float__",
    "__index__",
    "__int__",
    "cpu",
    "item",
    "masked_select",
    "nonzero",
    "tolist",
    "unique",
}


def is_cuda(value):
    """Tell whether an argument names the device."""
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.startswith("cuda")


def leaves(value):
    """Return what lists, tuples and dictionaries hold, faster than torch does."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return [value]
    found = []
    for part in value:
        if isinstance(part, (list, tuple, dict)):
            found += leaves(part)
        else:
            found.append(part)
    return found


class PretendedCuda(TorchFunctionMode):
    """Function mode that keeps tensors of the device and of the CPU apart.

    Attributes
    ----------
    calls : set of str
        Names of the functions that had tensors of the device.
    captures : bool
        Whether a graph is captured, so that nothing may be copied from or to the device.
    """

    def __init__(self):
        super().__init__()
        self.calls = set()
        self.captures = False
        self._storages = {}  # weak references, which keep no values

    def holds(self, tensor):
        """Tell whether a tensor is on the device."""
        return tensor.untyped_storage()._cdata in self._storages

    def put(self, result):
        """Put all tensors of a result on the device."""
        for tensor in leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self._storages:  # the reference keeps the address
                    self._storages[storage._cdata] = StorageWeakRef(storage)
        return result

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (torch.device, torch._C._nn._parse_to):  # these name it alone
            return function(*args, **kwargs)
        name = function.__name__
        # A copy is given all that was copied before it, too: much, and nothing that it computes.
        given = [args[0]] if name == "__deepcopy__" else leaves((args, kwargs))
        tensors = [x for x in given if isinstance(x, torch.Tensor)]
        outside = [x for x in tensors if not self.holds(x)]
        inside = len(outside) < len(tensors)
        if self.captures:
            self._check_capture(name, args, inside)
        if inside:
            self._check(name, outside)
            if name == "__get__" and function == torch.Tensor.device.__get__:
                return DEVICE
            if name == "__get__" and function == torch.Tensor.is_cuda.__get__:
                return True
            if name == "cpu":
                return function(*args, **kwargs).clone()
        if name == "pin_memory":
            return args[0]
        moved = any(is_cuda(x) for x in given)
        if moved:
            args, kwargs = tree_map(lambda x: "cpu" if is_cuda(x) else x, (args, kwargs))
        result = function(*args, **kwargs)
        if moved and not inside and result is not None and name in ("to", "tensor", "as_tensor"):
            if self.captures:
                raise RuntimeError(f"{name} copies to CUDA while a graph is captured")
            result = result.clone()  # may be a tensor, or memory, that stays on the CPU
        if name == "_pack_padded_sequence":  # its second result are sizes, on the CPU as lengths
            self.put(result[0])
            return result
        return self.put(result) if inside or moved else result

    def _check(self, name, outside):
        self.calls.add(name)
        shapes = [tuple(x.shape) for x in outside if x.dim() and x.numel()]
        if shapes and name not in MIXING:
            raise RuntimeError(f"{name} of a tensor on CUDA and tensors of {shapes} on the CPU")
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert a tensor on CUDA to numpy: copy it to the CPU first")

    def _check_capture(self, name, args, inside):
        counts = name in ("__getitem__", "__setitem__") and any(
            isinstance(index, torch.Tensor) and index.dtype == torch.bool
            for index in leaves(args[1])
        )
        if inside and (name in READING or counts):
            raise RuntimeError(f"{name} reads from CUDA while a graph is captured")


class _Generator(torch.Generator):
    """Generator of the CPU that names another device as its own."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")

    def __init__(self, device="cpu"):
        self._device = torch.device(device)

    @property
    def device(self):
        return self._device


class _Stream:
    """Stream whose work is done at once."""

    def __init__(self, device=None):
        pass

    def record_event(self):
        return self

    def wait_event(self, event):
        assert event is not None


def capture(device, compute, generator):
    """Replay by computing again, into the tensors of the first result; the first draws nothing.

    A graph of CUDA draws from its own generator, whichever the objective has by now.
    """
    state, own = generator.get_state(), weakref.ref(generator)
    device.captures = True
    try:
        results = compute()
    finally:
        device.captures = False
    generator.set_state(state)

    def replay():
        assert own() is not None
        for tensor, value in zip(leaves(results), leaves(compute()), strict=True):
            if tensor is not None:
                tensor.data.copy_(value)

    return replay, results


@contextlib.contextmanager
def pretended_cuda(monkeypatch, room=2**30):
    """Let torch find a CUDA device with some bytes of free memory; yield its mode."""
    autocast, is_enabled, dtype = (
        torch.autocast,
        torch.is_autocast_enabled,
        torch.get_autocast_dtype,
    )

    def on_cpu(function):
        return lambda device, *args, **kwargs: function("cpu", *args, **kwargs)

    cuda = {
        "is_available": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda device: (room, room),
        "Stream": _Stream,
        "stream": lambda stream: contextlib.nullcontext(),
        "current_stream": _Stream,
    }
    for name, function in cuda.items():
        monkeypatch.setattr(torch.cuda, name, function)
    if hasattr(torch, "accelerator"):  # in which the optimizers of later versions look for captures
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *args, **kwargs: None)
    monkeypatch.setattr(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    monkeypatch.setattr(torch, "Generator", _Generator)
    monkeypatch.setattr(torch, "autocast", on_cpu(autocast))
    monkeypatch.setattr(torch, "is_autocast_enabled", on_cpu(is_enabled))
    monkeypatch.setattr(torch, "get_autocast_dtype", on_cpu(dtype))
    with PretendedCuda() as device:
        monkeypatch.setattr(_captured, "_capture", partial(capture, device))
        yield device
