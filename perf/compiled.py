"""Encoder in training, as it is and compiled by torch, with the time of the compilation.

    python -m perf.compiled [--size har] [--rounds 7]

Each pass embeds a batch and computes the gradients of the weights, on one thread. The forms take
turns; time is that of the processor, except that of the first compiled pass, which compiles. That
pass must have the gradients of the form as it is; what fails is named with its error.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from perf.baselines import seconds
from perf.options import count
from perf.sizes import NAMES, Size

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}  # of the gradients' norm


def gradients(call: Callable[[Tensor], Tensor], encoder: nn.Module, x: Tensor) -> Tensor:
    """Return the gradients of the encoder's weights, in one row."""
    encoder.zero_grad()
    call(x).float().square().mean().backward()
    return torch.cat([weight.grad.flatten() for weight in encoder.parameters()])


def compare(size: Size, precision: str, rounds: int) -> str:
    """Return what compiling gains, or why it fails."""
    torch.compiler.reset()
    encoder, (x, _) = size.objective().encoder, size.batch(torch.device("cpu"))
    compiled = torch.compile(encoder)
    context = contextlib.nullcontext()
    if precision == "bfloat16":
        context = torch.autocast("cpu", dtype=torch.bfloat16)
    with context:
        expected = gradients(encoder, encoder, x)
        start = time.perf_counter()
        try:
            found = gradients(compiled, encoder, x)
        except Exception as error:  # whatever the compiler raises is the result
            return f"{precision}: does not compile ({type(error).__name__})"
        warm_up = time.perf_counter() - start
        error = float((found - expected).norm() / expected.norm())
        if not error < TOLERANCE[precision]:
            return f"{precision}: compiled in {warm_up:.0f} s, gradients differ by {error:.2g}"
        forms = {"as it is": encoder, "compiled": compiled}
        turns: dict[str, list[float]] = {name: [] for name in forms}
        for _ in range(rounds):
            for name, form in forms.items():
                turns[name].append(seconds(lambda f=form: gradients(f, encoder, x)))
    plain, fused = (1000 * statistics.median(values) for values in turns.values())
    times = f"{plain:.0f} ms as it is, {fused:.0f} ms compiled (ratio {plain / fused:.2f})"
    return f"{precision}: {times}, compiled in {warm_up:.0f} s"


def main() -> None:
    """Print a line per precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=NAMES, default="har")
    parser.add_argument("--rounds", type=count, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for precision in TOLERANCE:
        print(compare(Size(options.size), precision, options.rounds), flush=True)


if __name__ == "__main__":
    main()
