import re

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows

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
    with pytest.raises(ValueError, match=f"(?s){message}.*Pass the whole state dictionary"):
        from_reference_checkpoint(change(to_reference_state(fitted)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state, name: state.pop(name), "it lacks {!r}. Pass"),
        (lambda state, name: state.update({name: torch.zeros(1)}), "{!r} is torch.float32 of"),
        (lambda state, name: state.update({name: state[name] * torch.nan}), "{!r} holds NaN"),
        (lambda state, name: state.update({f"{name}_": state[name]}), "weights named '{}_'. Pass"),
    ],
)
def test_weights_are_named_as_in_the_file(fitted, change, message):
    name = "encoder.ts_encoder.feature_extractor.net.0.conv1.conv.weight"
    state = to_reference_state(fitted)
    change(state, name)
    with pytest.raises(ValueError, match=re.escape(message.format(name))):
        from_reference_checkpoint(state)


def test_a_size_that_disagrees_is_refused(fitted):
    with pytest.raises(ValueError, match="embedding_dim=320 disagrees.*8"):
        from_reference_checkpoint(to_reference_state(fitted), embedding_dim=320)


def test_weights_are_exported_after_a_fit_only():
    with pytest.raises(NotFittedError):
        to_reference_state(PulseTransformer())


def test_other_estimators_have_no_published_weights(fitted):
    other = RandomEncoderTransformer(**SMALL_ENCODER).fit(X)
    for estimator in (other, make_pipeline(fitted)):
        with pytest.raises(TypeError, match=f"PulseTransformer, got {type(estimator).__name__}: "):
            to_reference_state(estimator)
    assert to_reference_state(FrozenEstimator(fitted)).keys() == to_reference_state(fitted).keys()


def test_linear_observation_has_no_published_names():
    fitted = PulseTransformer(**SMALL_PULSE, observation="linear").fit(X)
    for present in ("linear", "mlp"):
        with pytest.raises(ValueError, match="fitted with observation='linear'.*observation='mlp'"):
            to_reference_state(fitted.set_params(observation=present))


def test_the_fit_counts_not_a_parameter_that_changed_later():
    fitted = PulseTransformer(**SMALL_PULSE).fit(X)
    expected = to_reference_state(fitted)
    found = to_reference_state(fitted.set_params(observation="linear"))
    assert all(torch.equal(found.pop(name), value) for name, value in expected.items())
    assert not found


def test_a_frozen_encoder_has_no_published_names():
    small = {"block_weights": (1, 0, 0, 0), "random_state": 0, "num_threads": 1}
    frozen = FrozenEstimator(CrossPredictionTransformer(**small).fit(X))
    settings = {k: v for k, v in SMALL_PULSE.items() if k not in SMALL_ENCODER}
    fitted = PulseTransformer(**settings, encoder=frozen).fit(X)
    for present in (frozen, None):
        with pytest.raises(ValueError, match="fit with encoder=None"):
            to_reference_state(fitted.set_params(encoder=present))


def test_the_former_format_holds_no_large_number(fitted, tmp_path):
    state, path = to_reference_state(fitted), tmp_path / "model.pt"
    former = {"_use_new_zipfile_serialization": False}
    torch.save({"state_dict": state, "seed": 2**31}, path, **former)
    with pytest.raises(ValueError, match="a number in it, .* above.*torch.save its tensors alone"):
        from_reference_checkpoint(path)
    torch.save(state, path, **former)  # as the message says
    assert from_reference_checkpoint(path).embedding_dim == fitted.embedding_dim


def test_the_usual_wrapper_is_taken_off(fitted, tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"state_dict": to_reference_state(fitted), "epoch": 3}, path)
    restored = from_reference_checkpoint(path)
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


FIRST = "encoder.ts_encoder.input_fc.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"model": s, "optimizer": {}}, "under 'model', 'optimizer': load it, and pass"),
        (lambda s: s | {FIRST: s[FIRST] * torch.nan}, "NaN or infinite"),
        (lambda s: s | {FIRST: s[FIRST].long()}, f"'{FIRST}' is of type torch.int64"),
        (lambda s: s | {FIRST: s[FIRST].bool()}, f"'{FIRST}' is of type torch.bool"),
        (lambda s: s | {FIRST: s[FIRST].to(torch.complex64)}, "is of type torch.complex64"),
        (lambda s: {name: w * 1e38 for name, w in s.items()}, "embedding of a plain sine"),
        (lambda s: s | {"head.weight": torch.zeros(1)}, "holds 'head.weight'"),
        (lambda s: s | {FIRST: s[FIRST][0]}, r"has the shape \(2,\)"),
        (lambda s: list(s), "no dictionary of weights"),
        (lambda s: {k: v for k, v in s.items() if k != FIRST}, f"lacks '{FIRST}'"),
    ],
)
def test_errors_name_the_file(fitted, tmp_path, change, message):
    path = tmp_path / "published.pt"
    torch.save(change(dict(to_reference_state(fitted))), path)
    with pytest.raises(ValueError, match=message) as caught:
        from_reference_checkpoint(path)
    assert str(path) in str(caught.value)
    assert "Pass the whole state dictionary" in str(caught.value)


def test_a_path_without_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.pt"):
        from_reference_checkpoint(tmp_path / "missing.pt")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ValueError, match="a file of safetensors: pass .*load_file"):
        from_reference_checkpoint(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="is a folder: load .* PulseTransformer.from_pretrained"):
        from_reference_checkpoint(tmp_path)


@pytest.mark.parametrize("kind", [np.int64, np.complex64, object, np.str_])
def test_arrays_that_are_no_weights(fitted, kind):
    state = {name: value.numpy() for name, value in to_reference_state(fitted).items()}
    from_reference_checkpoint(state)
    with pytest.raises(ValueError, match=f"the state dictionary .*'{FIRST}' is of type"):
        from_reference_checkpoint(state | {FIRST: state[FIRST].astype(kind)})


@pytest.mark.parametrize("kind", [">f4", "<f4", np.float64, np.longdouble])
def test_arrays_of_every_byte_order_and_size(fitted, kind):
    state = to_reference_state(fitted)
    read = {name: value.numpy().astype(kind) for name, value in state.items()}
    restored = to_reference_state(from_reference_checkpoint(read))
    assert all(torch.equal(restored[name], value) for name, value in state.items())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pooling": "median"}, "^pooling must be one of"),
        ({"device": "gpu"}, "^device must be 'auto'"),
        ({"embedding_dim": np.array([8, 8])}, "^embedding_dim must be an integer"),
    ],
)
def test_a_wrong_parameter_is_not_blamed_on_the_file(fitted, params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        from_reference_checkpoint(to_reference_state(fitted), **params)


def test_a_checkpoint_has_an_encoder_of_its_own(fitted):
    with pytest.raises(ValueError, match="^encoder is given, but .*: leave encoder out"):
        from_reference_checkpoint(to_reference_state(fitted), encoder=FrozenEstimator(fitted))


def test_the_exported_weights_are_copies(fitted):
    before = fitted.transform(X)
    for weight in to_reference_state(fitted).values():
        weight.zero_()
    np.testing.assert_array_equal(fitted.transform(X), before)


@pytest.mark.parametrize("given", [3, None, b"model.pt", "module"])
def test_what_is_neither_a_state_nor_a_path_is_named(fitted, given):
    given = fitted.net_.module_ if given == "module" else given
    with pytest.raises(TypeError, match=r"^state_or_path must be .* pass its state_dict\(\)"):
        from_reference_checkpoint(given)
    for path in ("", "model\0.pt"):
        with pytest.raises(ValueError, match="^state_or_path is '.*': pass the path of a file"):
            from_reference_checkpoint(path)


def test_a_file_in_the_home_of_the_user(fitted, tmp_path, monkeypatch):
    torch.save(to_reference_state(fitted), tmp_path / "model.pt")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    restored = from_reference_checkpoint("~/model.pt")
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))
