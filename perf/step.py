"""Training step of an objective, which the benchmarks time."""

import contextlib

import torch
from skorch.callbacks import Callback

from sklearn_pulse._threads import workers_only


def threads_of(module):
    """Return the context in which `fit` runs a step of a module, which divides the threads."""
    in_parts = getattr(module, "computes_in_parts", False)
    return workers_only() if in_parts else contextlib.nullcontext()


def make_step(module, x, starts, precision="float32"):
    """Return a call that runs one training step: loss, gradient, clipping, AdamW."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=1e-5, fused=True)
    autocast = contextlib.nullcontext()
    if precision == "bfloat16":
        autocast = torch.autocast(x.device.type, dtype=torch.bfloat16)

    def step():
        with threads_of(module):
            optimizer.zero_grad()
            with autocast:
                loss = module(x=x, starts=starts)
            loss.backward()
            torch.nn.utils.clip_grad_value_(module.parameters(), 5.0)
            optimizer.step()

    return step


class Launched(Callback):
    """Keeps a GPU from replaying steps, by a hook that does nothing."""

    def on_train_begin(self, net, **kwargs):
        """Put the hook on the objective."""
        net.module_.register_forward_hook(lambda *_: None)
