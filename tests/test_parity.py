"""The published numbers, through the door that users of published checkpoints take."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state

FOLDER = Path(__file__).parent / "parity"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
ATOL = 1e-5
GRADIENT_RTOL = 1e-4


class Fixture:
    def __init__(self, name):
        self.sizes = json.loads((FOLDER / f"{name}.json").read_text())
        with np.load(FOLDER / f"{name}.npz") as arrays:
            self.arrays = dict(arrays)
        self.weights = {
            key.removeprefix("param/"): torch.from_numpy(value)
            for key, value in self.arrays.items()
            if key.startswith("param/")
        }
        self.estimator = from_reference_checkpoint(
            self.weights,
            init_dilation=self.sizes["init_dilation"],
            time_varying_pool=self.sizes["time_varying_pool"],
            n_crops=self.sizes["n_crops"],
            min_crop_length=self.sizes["right_boundary"],
            dropout=0.0,
        )
        self.objective = self.estimator.net_.module_
        self.x = torch.from_numpy(self.arrays["x"])
        self.starts = torch.from_numpy(self.arrays["starts"])

    def expect(self, key, actual):
        np.testing.assert_allclose(
            actual.detach().numpy(), self.arrays[key], rtol=0, atol=ATOL, err_msg=key
        )


@pytest.fixture(params=NAMES)
def fixture(request):
    return Fixture(request.param)


def test_there_are_fixtures():
    assert len(NAMES) == 7


def test_sizes_come_from_the_shapes(fixture):
    sizes, estimator = fixture.sizes, fixture.estimator
    assert estimator.n_channels_in_ == sizes["channels"]
    assert estimator.embedding_dim == sizes["embedding_dim"]
    assert estimator.encoder_hidden_dim == sizes["encoder_hidden"]
    assert estimator.encoder_depth == sizes["encoder_depth"]
    assert estimator.gru_num_layers == sizes["gru_layers"]
    assert estimator.gru_hidden_dim == sizes["gru_hidden"]
    assert estimator.init_kernel_size == sizes["init_kernel"]
    assert estimator.init_hidden_dim == sizes["init_hidden"]
    assert estimator.time_varying_dim == sizes["time_varying_dim"]
    assert estimator.shared_encoder == sizes["shared_init"]


def test_embedding(fixture):
    embedding = fixture.estimator.transform(fixture.arrays["x"])
    fixture.expect("embedding", torch.from_numpy(embedding))


def test_what_is_read_off_the_window(fixture):
    encoding = fixture.objective.encode_window(fixture.x)
    fixture.expect("embedding", encoding.embedding)
    fixture.expect("timestep_embedding", fixture.objective.encoder.encode_steps(fixture.x))
    if "time_varying" in fixture.arrays:
        fixture.expect("time_varying", encoding.time_varying)
    else:
        assert encoding.time_varying.shape[-1] == 0


def test_every_pass(fixture):
    objective = fixture.objective
    passes = objective.reconstruct(fixture.x, starts=fixture.starts)
    losses = objective.pass_losses(passes)
    for i in range(fixture.sizes["n_crops"]):
        length = passes.n_steps[i]
        state = objective.decoder.initial_state(passes.condition[i])
        fixture.expect(f"crop{i}_h0", state)
        fixture.expect(f"crop{i}_pred", passes.prediction[:length, i].transpose(0, 1))
        fixture.expect(f"crop{i}_loss", losses[i])
        assert not passes.prediction[length:, i].any()
    fixture.expect("full_pred", passes.prediction[:, -1].transpose(0, 1))
    fixture.expect("full_loss", losses[-1])


def test_total_and_every_gradient(fixture):
    loss = fixture.objective(x=fixture.x, starts=fixture.starts)
    fixture.expect("loss", loss)
    loss.backward()
    gradients = {
        key.removeprefix("grad/"): value
        for key, value in fixture.arrays.items()
        if key.startswith("grad/")
    }
    names = to_reference_state(fixture.estimator)
    parameters = dict(zip(names, (p for _, p in fixture.objective.named_parameters()), strict=True))
    assert gradients.keys() == parameters.keys()
    for name, expected in gradients.items():
        actual = parameters[name].grad.numpy().reshape(expected.shape)
        scale = np.abs(expected).max()
        assert np.abs(actual - expected).max() <= GRADIENT_RTOL * scale, name


def test_dropout_is_off_outside_training(fixture):
    objective = fixture.objective
    objective.dropout = 0.5
    off = objective.eval()(x=fixture.x, starts=fixture.starts)
    on = objective.train()(x=fixture.x, starts=fixture.starts)
    fixture.expect("loss", off)
    assert not torch.isclose(on, off)
