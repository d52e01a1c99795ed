import numpy as np
import pytest
import torch

from sklearn_pulse import PulseTransformer
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from tests.helpers import SMALL_PULSE, make_windows

X = make_windows()[0]


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(**SMALL_PULSE).fit(X)


def test_there_and_back(fitted, tmp_path):
    state = to_reference_state(fitted)
    np.testing.assert_array_equal(
        from_reference_checkpoint(state).transform(X), fitted.transform(X)
    )
    path = tmp_path / "model.pt"
    torch.save(state, path)
    np.testing.assert_array_equal(from_reference_checkpoint(path).transform(X), fitted.transform(X))


def test_a_checkpoint_tells_no_length_of_windows(fitted):
    restored = from_reference_checkpoint(to_reference_state(fitted))
    assert restored.n_timesteps_in_ is None
    assert restored.transform(np.zeros((2, 999, 2))).shape == (2, 8)
    with pytest.raises(ValueError, match="expecting 2 channels"):
        restored.transform(np.zeros((2, 16, 3)))


def test_a_restored_estimator_trains_on(fitted):
    restored = from_reference_checkpoint(
        to_reference_state(fitted), warm_start=True, max_epochs=1, lr=1e-12, weight_decay=0.0
    )
    np.testing.assert_allclose(restored.fit_transform(X), fitted.transform(X), atol=1e-5)


def test_nothing_in_a_file_is_executed(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    path = tmp_path / "model.pt"
    torch.save({"encoder": Hostile()}, path)
    with pytest.raises(ValueError, match=r"model\.pt is refused: it asks for"):
        from_reference_checkpoint(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state | {"head.weight": torch.zeros(1)}, "holds 'head.weight'"),
        (lambda state: {}, "lacks"),
        (
            lambda state: {k: v for k, v in state.items() if "fc2.bias" not in k},
            "not a checkpoint of PULSE",
        ),
    ],
)
def test_other_checkpoints_are_refused(fitted, change, message):
    with pytest.raises(ValueError, match=message):
        from_reference_checkpoint(change(to_reference_state(fitted)))


def test_a_size_that_disagrees_is_refused(fitted):
    with pytest.raises(ValueError, match="embedding_dim=320 disagrees.*8"):
        from_reference_checkpoint(to_reference_state(fitted), embedding_dim=320)


def test_linear_observation_has_no_published_names():
    fitted = PulseTransformer(**SMALL_PULSE, observation="linear").fit(X)
    with pytest.raises(ValueError, match="observation='linear'"):
        to_reference_state(fitted)
