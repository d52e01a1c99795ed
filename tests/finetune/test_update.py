"""The published update, literally."""

import copy

import pytest
import torch

from sklearn_pulse import FineTuneClassifier
from tests.helpers import BatchSpy, callback_of

from .tuning import same, tuned


@pytest.mark.parametrize("head_hidden_dim", [5, None])
def test_the_published_update(pulse, windows, head_hidden_dim):
    """Adam with the penalty in the gradient, and a learning rate that falls a little each batch."""
    lr, decay, penalty, beta1, beta2, eps = 3e-3, 0.9, 1e-2, 0.9, 0.999, 1e-8
    classifier = tuned(
        pulse,
        head_hidden_dim=head_hidden_dim,
        lr=lr,
        lr_decay=decay,
        weight_decay=penalty,
        callbacks=[BatchSpy()],
    ).fit(*windows)
    spy = callback_of(classifier, BatchSpy)
    before = spy.before_.state_dict()
    assert [len(batch["x"]) for batch in spy.batches_] == [8, 8, 4] * 2

    encoder = copy.deepcopy(pulse.encoder_)
    start = {name: before[f"source.encoder.{name}"] for name in encoder.state_dict()}
    assert same(start, encoder.state_dict())
    weights = {f"source.encoder.{name}": p for name, p in encoder.named_parameters()}
    for name, tensor in before.items():
        if name.startswith(("in_head", "head")):
            weights[name] = tensor.clone().requires_grad_()
    first, second = (dict.fromkeys(weights, 0.0) for _ in range(2))
    for step, batch in enumerate(spy.batches_):
        x = batch["x"] @ weights["in_head.weight"].T + weights["in_head.bias"]
        hidden = encoder(x)
        if head_hidden_dim is not None:
            hidden = torch.tanh(hidden @ weights["head.0.weight"].T + weights["head.0.bias"])
        last = "head.0" if head_hidden_dim is None else "head.2"
        logits = hidden @ weights[f"{last}.weight"].T + weights[f"{last}.bias"]
        loss = 0.0
        for row, label in zip(logits, batch["y"].tolist(), strict=True):
            loss = loss - torch.log(torch.exp(row[label]) / torch.exp(row).sum())
        gradients = torch.autograd.grad(loss / len(logits), list(weights.values()))
        with torch.no_grad():
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
                gradient = gradient + penalty * weight
                first[name] = beta1 * first[name] + (1 - beta1) * gradient
                second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
                mean = first[name] / (1 - beta1 ** (step + 1))
                square = second[name] / (1 - beta2 ** (step + 1))
                weight -= lr * decay**step * mean / (square.sqrt() + eps)
    after = classifier.net_.module_.state_dict()
    for name, weight in weights.items():
        torch.testing.assert_close(after[name], weight.detach(), rtol=1e-3, atol=2e-5)
        assert not torch.allclose(after[name], before[name], atol=1e-3)


def test_defaults_are_published():
    params = FineTuneClassifier().get_params()
    published = {"max_epochs": 40, "lr": 3e-4, "weight_decay": 1e-6, "lr_decay": 0.9999}
    published |= {"batch_size": 30, "head_hidden_dim": 64, "freeze_epochs": 0, "select": "last"}
    assert {name: params[name] for name in published} == published
