"""Fits that end in the middle, as a kill would end them."""

import contextlib

import pytest

from sklearn_pulse._training._net import SSLNet


@contextlib.contextmanager
def killed(epoch, batch=1, objective=object):
    """Expect a fit to be killed before a batch of an epoch, counted from 1.

    With `objective`, batches of that objective alone count, for a method of several stages.
    """
    train_step = SSLNet.train_step

    def step(net, *args, **kwargs):
        at = len(net.history), len(net.history[-1, "batches"])
        if at == (epoch, batch) and isinstance(net.module_, objective):
            raise KeyboardInterrupt
        return train_step(net, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SSLNet, "train_step", step)
        yield
