import errno
import os
import re
import stat
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from skorch.callbacks import GradientNormClipping

from sklearn_pulse import (
    PulseTransformer,
    RandomEncoderTransformer,
    load_pretrained,
    save_pretrained,
)
from sklearn_pulse._chain import _load as _chain_load
from sklearn_pulse._persistence import _files, _load
from sklearn_pulse.baselines import TS2VecTransformer
from tests.helpers import SMALL_ENCODER, full_disk, small
from tests.persistence.helpers import FILES, X, pulse, read_config, write_config


@pytest.fixture(scope="module")
def fitted():
    return pulse().fit(X)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_model_is_three_files(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == sorted(FILES)


@pytest.mark.parametrize("save", ["save_pretrained", "pipeline"])
def test_a_full_disk_is_told_and_keeps_the_earlier_model(fitted, save, tmp_path):
    model = fitted if save == "save_pretrained" else make_pipeline(fitted, MinMaxScaler()).fit(X)
    write = partial(getattr(model, save, partial(save_pretrained, model)), tmp_path / "model")
    write()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with full_disk(), pytest.raises(OSError, match="free space there, or name another") as caught:
        write()
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert caught.value.filename.startswith(str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_nothing_is_saved_before_a_fit(tmp_path):
    with pytest.raises(NotFittedError):
        pulse().save_pretrained(tmp_path / "model")
    assert not names(tmp_path)


def test_others_may_read_it_as_the_umask_says(fitted, tmp_path):
    before = os.umask(0o022)
    try:
        fitted.save_pretrained(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o755
    for file in FILES:
        assert stat.S_IMODE((tmp_path / "model" / file).stat().st_mode) == 0o644


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("content", ["nothing", "a model"])
def test_a_private_folder_stays_private(fitted, tmp_path, content):
    folder = tmp_path / "model"
    folder.mkdir()
    if content == "a model":
        fitted.save_pretrained(folder)
    folder.chmod(0o700)
    fitted.save_pretrained(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_versions_are_stored(fitted, tmp_path):
    import sklearn

    import sklearn_pulse

    fitted.save_pretrained(tmp_path / "model")
    assert read_config(tmp_path / "model")["versions"] == {
        "sklearn_pulse": sklearn_pulse.__version__,
        "scikit-learn": sklearn.__version__,
        "torch": torch.__version__,
    }


def test_the_card_tells_how_to_load_and_how_it_was_trained(tmp_path):
    pulse(max_epochs=6, lr=0.0025).fit(X).save_pretrained(tmp_path / "pulse")
    card = (tmp_path / "pulse" / "README.md").read_text(encoding="utf-8")
    history = PulseTransformer.from_pretrained(tmp_path / "pulse").history_
    for text in (
        "# PulseTransformer",
        "from sklearn_pulse import PulseTransformer",
        "PulseTransformer.from_pretrained(",
        "# (n_samples, n_timesteps, 2)",
        "Windows of 16 time steps, 2 channel(s)",
        "6 epoch(s); the weights are those of epoch 5",
        f"training loss: {history[-1]['train_loss']:.6g}",
        f"validation loss: {history[-1]['valid_loss']:.6g}",
        "\nlr=0.0025\n",
        "## Licence\n\nNot stated",
        "## What it is not for",
    ):
        assert text in card


def test_model_card_without_training_and_of_other_shapes(tmp_path):
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, input_layout="nct")
    encoder.fit(X.swapaxes(1, 2)).save_pretrained(tmp_path / "random")
    card = (tmp_path / "random" / "README.md").read_text(encoding="utf-8")
    assert "from sklearn_pulse.baselines import RandomEncoderTransformer" in card
    assert "# (n_samples, 2, n_timesteps)" in card
    assert "No epochs are recorded" in card
    pulse(select="last").fit(X[:, :, 0]).save_pretrained(tmp_path / "table")
    card = (tmp_path / "table" / "README.md").read_text(encoding="utf-8")
    assert "# (n_samples, n_timesteps)\n" in card
    assert "the weights are those of the last" in card


def test_model_card_of_averaged_weights(tmp_path):
    mean = small(TS2VecTransformer, select="average").fit(X)
    best = small(TS2VecTransformer, select="average_min_val").fit(X)
    for model, text in (
        (mean, "the mean over all updates."),
        (best, f"the mean over all updates, as it was after epoch {best.selected_epoch_}."),
    ):
        model.save_pretrained(tmp_path / "mean")
        card = (tmp_path / "mean" / "README.md").read_text(encoding="utf-8")
        assert f"the weights are {text}\n" in card


# --- parameters ---


def test_numpy_scalars_and_sequences_keep_their_meaning(tmp_path):
    params = {
        "batch_size": np.int64(8),
        "lr": np.float32(0.001),
        "pooling": np.str_("max"),
        "n_crops": np.uint8(1),
        "callbacks": (),
        "gradient_clip_value": None,
        "crop": "fixed",
        "crop_length": 5,
        "verbose": False,
    }
    fitted = pulse(**params).fit(X)
    fitted.save_pretrained(tmp_path / "model")
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    assert restored.get_params() == fitted.get_params() | {"num_threads": None}
    types = {name: type(restored.get_params()[name]) for name in params}
    assert types == {
        "batch_size": int,
        "lr": float,
        "pooling": str,
        "n_crops": int,
        "callbacks": tuple,
        "gradient_clip_value": type(None),
        "crop": str,
        "crop_length": int,
        "verbose": bool,
    }


def test_callbacks_and_generators_are_left_out_with_a_warning(tmp_path):
    fitted = pulse(callbacks=[GradientNormClipping()], random_state=np.random.RandomState(0)).fit(X)
    with pytest.warns(UserWarning, match="callbacks=.*random_state=RandomState") as caught:
        fitted.save_pretrained(tmp_path / "model")
    assert [warning.filename for warning in caught] == [__file__]
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    assert (restored.callbacks, restored.random_state) == (None, None)
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("embedding_dim", 4, "fitted with embedding_dim=8, .* build it with 4. Set .* back"),
        ("pooling", "mean", "fitted with pooling='max', .* build it with 'mean'"),
        ("precision", "bfloat16", "fitted with precision='float32'"),
        ("embedding_dim", "wide", "must be an integer"),
    ],
)
def test_a_parameter_that_was_changed_after_fit(tmp_path, name, value, message):
    changed = pulse().fit(X).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"cannot be saved: .*{message}") as caught:
        changed.save_pretrained(tmp_path / "model")
    assert "partial" not in str(caught.value)
    assert not names(tmp_path)


def test_weights_that_are_nan_are_not_saved(tmp_path):
    diverged = pulse().fit(X)
    with torch.no_grad():
        diverged.encoder_.norm.weight[0] = torch.nan
    with pytest.raises(ValueError, match=r"'encoder.norm.weight' holds NaN .*lower lr"):
        diverged.save_pretrained(tmp_path / "model")


# --- folders ---


@pytest.fixture
def other():
    return pulse(random_state=1).fit(X)


def test_an_earlier_model_is_replaced(fitted, other, tmp_path):
    for estimator in (other, fitted):
        estimator.save_pretrained(tmp_path / "model")
        restored = PulseTransformer.from_pretrained(tmp_path / "model")
        np.testing.assert_array_equal(restored.transform(X), estimator.transform(X))
    assert names(tmp_path) == ["model"]


def test_an_empty_folder_is_taken(fitted, tmp_path):
    fitted.save_pretrained(tmp_path)
    restored = PulseTransformer.from_pretrained(tmp_path)
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def spoil_something_else(folder):
    (folder / "thesis.tex").write_text("the only copy")


def spoil_config(folder):
    (folder / "config.json").write_text('{"architectures": ["Bert"]}')


def spoil_no_config(folder):
    (folder / "config.json").unlink()


def spoil_card(folder):
    card = folder / "README.md"
    card.write_text(
        card.read_text(encoding="utf-8").replace("Not stated.", "CC BY 4.0."), encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_something_else, "something else, 'thesis.tex'. Name a new folder"),
        (spoil_config, "not written by sklearn_pulse"),
        (spoil_no_config, "no earlier model"),
        (spoil_card, "README.md was edited .*would be lost"),
    ],
)
def test_anything_else_is_left_alone(fitted, other, tmp_path, spoil, message):
    other.save_pretrained(tmp_path / "model")
    spoil(tmp_path / "model")
    before = {path: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(FileExistsError, match=message):
        fitted.save_pretrained(tmp_path / "model")
    assert {path: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert names(tmp_path) == ["model"]


def test_a_file_a_link_and_the_working_folder_are_refused(fitted, other, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file"):
        fitted.save_pretrained(tmp_path / "file")
    other.save_pretrained(tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for link in ("link", "broken"):
        with pytest.raises(FileExistsError, match="symbolic link"):
            fitted.save_pretrained(tmp_path / link)
    with monkeypatch.context() as patch, pytest.raises(FileExistsError, match="mount point: name"):
        patch.setattr("pathlib.Path.is_mount", lambda path: path.name == "volume")
        fitted.save_pretrained(tmp_path / "volume")
    monkeypatch.chdir(tmp_path / "model")
    for here in (".", "../model"):
        with pytest.raises(FileExistsError, match="working folder"):
            fitted.save_pretrained(here)
    with pytest.raises(ValueError, match="folder must be a path"):
        fitted.save_pretrained("")


def test_an_interrupted_save_leaves_the_earlier_model(fitted, other, tmp_path, monkeypatch):
    other.save_pretrained(tmp_path / "model")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_pulse._persistence._save.check_reads_back", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.save_pretrained(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(restored.transform(X), other.transform(X))


def test_a_folder_that_cannot_be_put_in_place(fitted, other, tmp_path, monkeypatch):
    other.save_pretrained(tmp_path / "model")
    rename = os.rename

    def failing(source, target):
        if str(source).endswith("partial"):
            raise OSError("no space")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="no space"):
        fitted.save_pretrained(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(restored.transform(X), other.transform(X))


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("is_done", [False, True])
def test_an_interrupt_between_two_folders_leaves_a_model(
    fitted, other, tmp_path, monkeypatch, call, is_done
):
    """Ctrl-C while the earlier model makes room, before or after each renaming."""
    other.save_pretrained(tmp_path / "model")
    rename, calls = os.rename, []

    def interrupted(source, target):
        calls.append(source)
        if len(calls) == call and not is_done:
            raise KeyboardInterrupt
        rename(source, target)
        if len(calls) == call:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.save_pretrained(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    expected = fitted if (call, is_done) == (2, True) else other
    np.testing.assert_array_equal(restored.transform(X), expected.transform(X))


def test_another_process_saves_into_the_same_folder(fitted, other, tmp_path, monkeypatch):
    """It puts its model in place while this one makes room: the last of two whole models stays."""
    fitted.save_pretrained(tmp_path / "model")
    rename, done = os.rename, []

    def overtaken(source, target):
        if str(source).endswith("partial") and not done:
            done.append(source)
            other.save_pretrained(target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", overtaken)
    fitted.save_pretrained(tmp_path / "model")
    assert done and names(tmp_path) == ["model"]
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_another_process_saves_while_the_folder_is_read(fitted, other, tmp_path, monkeypatch):
    """The weights no longer go with the configuration: the new model is read from the start."""
    fitted.save_pretrained(tmp_path / "model")
    read, done = _load.read_weights, []

    def overtaken(*args):
        if not done:
            done.append(args)
            other.save_pretrained(tmp_path / "model")
        return read(*args)

    monkeypatch.setattr(_load, "read_weights", overtaken)
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(restored.transform(X), other.transform(X))


def test_a_folder_is_read_while_another_takes_its_place(fitted, tmp_path, monkeypatch):
    folder, away = tmp_path / "model", tmp_path / ".model.0.earlier"
    fitted.save_pretrained(folder)
    os.rename(folder, away)
    monkeypatch.setattr(_files.time, "sleep", lambda _: os.rename(away, folder))
    restored = _load.load(PulseTransformer, folder, "cpu")
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_where_a_killed_save_has_left_the_earlier_model_is_said(fitted, tmp_path):
    folder, away = tmp_path / "model", tmp_path / ".model.0.earlier"
    fitted.save_pretrained(folder)
    os.rename(folder, away)
    with pytest.raises(FileNotFoundError, match="was interrupted, .* lies in (.*). Rename") as told:
        PulseTransformer.from_pretrained(folder)
    os.rename(re.search("lies in (.*). Rename", str(told.value))[1], folder)
    PulseTransformer.from_pretrained(folder)


def test_another_process_saves_a_chain_while_it_is_read(fitted, tmp_path, monkeypatch):
    chains = [
        make_pipeline(fitted, MinMaxScaler((0, top)).fit(fitted.transform(X))) for top in (1, 2)
    ]
    save_pretrained(chains[0], tmp_path / "model")
    read, done = _chain_load.read_weights, []

    def overtaken(*args):
        if not done:
            done.append(args)
            save_pretrained(chains[1], tmp_path / "model")
        return read(*args)

    monkeypatch.setattr(_chain_load, "read_weights", overtaken)
    restored = load_pretrained(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(restored.transform(X), chains[1].transform(X))


def test_the_longest_name_of_a_folder(fitted, tmp_path):
    for _ in range(2):
        fitted.save_pretrained(tmp_path / ("n" * 255))
    assert names(tmp_path) == ["n" * 255]


def test_a_model_of_a_later_format_may_be_replaced(fitted, other, tmp_path):
    other.save_pretrained(tmp_path / "model")
    write_config(tmp_path / "model", read_config(tmp_path / "model") | {"format_version": 99})
    fitted.save_pretrained(tmp_path / "model")
    PulseTransformer.from_pretrained(tmp_path / "model")
