"""Every wrong file is an error that names it; nothing in a file is ever run."""

import copy
import json
import os
import pickle
import re
import shutil
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer, load_pretrained
from sklearn_pulse.base import BaseEncoderTransformer
from sklearn_pulse.baselines import PatchTSTTransformer, SimMTMTransformer
from sklearn_pulse.features import RhythmTransformer
from tests.helpers import small
from tests.persistence.helpers import (
    FILES,
    X,
    change_weights,
    pulse,
    read_config,
    write_config,
    write_weights,
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home") / "model"
    pulse().fit(X).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def embedding(saved):
    return PulseTransformer.from_pretrained(saved).transform(X)


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def refuses(folder, message, error=ValueError):
    """Both doors refuse, and say which folder it is about."""
    for cls in (PulseTransformer, BaseEncoderTransformer):
        with pytest.raises(error, match=message) as caught:
            cls.from_pretrained(folder)
        assert str(folder) in str(caught.value)


# --- files that are not there, or not files ---


def test_a_missing_folder_or_file_is_named(folder):
    refuses(folder / "nowhere", "there is no folder.*save_pretrained", FileNotFoundError)
    refuses(folder / "config.json", "there is no folder", FileNotFoundError)
    (folder / "model.safetensors").unlink()
    refuses(folder, "there is no file .*model.safetensors.*copy both", FileNotFoundError)
    (folder / "config.json").unlink()
    refuses(folder, "there is no file .*config.json.*copy both", FileNotFoundError)


@pytest.mark.parametrize("file", FILES[:2])
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_links_folders_and_pipes_are_not_followed(folder, file, what):
    path = folder / file
    moved = path.rename(folder.parent / "moved")
    if what == "link":
        path.symlink_to(moved)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)  # reading it would wait for ever
    refuses(folder, f"{file} is a link or no regular file.*copy the file itself")


def test_the_model_card_is_not_needed(folder, embedding):
    (folder / "README.md").unlink()
    restored = PulseTransformer.from_pretrained(folder)
    np.testing.assert_array_equal(restored.transform(X), embedding)


# --- config.json ---


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not JSON, or damaged"),
        ("no JSON", "not JSON, or damaged"),
        ('{"format": "sklearn_pulse", "lr": NaN}', "NaN is not JSON"),
        ("\xff\xfe", "not JSON, or damaged"),
        ("[" * 100_000, "not JSON, or damaged"),
        ("[]", "not written by sklearn_pulse"),
        ('{"architectures": ["BertModel"], "model_type": "bert"}', "not written by sklearn_pulse"),
        ('{"format": "sklearn_pulse"}', "format version None .*written by sklearn_pulse None"),
        ('{"format": "sklearn_pulse", "format_version": 1}', "checksum"),
        ('{"format": "sklearn_pulse", "format_version": 1, "x": 1e999}', "no model"),
        ('{"format": "sklearn_pulse", "format_version": 1, "x": ' + "1" * 5000 + "}", "not JSON"),
        (
            '{"format": "sklearn_pulse", "format_version": 1, "x": '
            + "[" * 900
            + "]" * 900
            + ', "checksum": ""}',
            "checksum|no model|not JSON",
        ),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(folder, content, message):
    (folder / "config.json").write_bytes(content.encode("latin1"))
    refuses(folder, f"config.json.*{message}")


def test_a_configuration_without_end(folder):
    with open(folder / "config.json", "wb") as stream:
        stream.truncate(2**40)  # no bytes on the disk
    refuses(folder, "config.json is too large")


def test_a_later_format_says_who_wrote_it(folder):
    config = read_config(folder) | {"format_version": 2, "versions": {"sklearn_pulse": "9.8.7"}}
    write_config(folder, config)
    refuses(folder, r"format version 2 .*written by sklearn_pulse 9\.8\.7.*install")


def test_a_parameter_edited_by_hand(folder):
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"pooling": "max"', '"pooling": "mean"'))
    refuses(folder, "changed after it was saved .*set_params")


def test_layout_of_the_configuration_does_not_matter(folder, embedding):
    config = dict(reversed(read_config(folder).items()))
    (folder / "config.json").write_text(json.dumps(config, indent=7))
    restored = PulseTransformer.from_pretrained(folder)
    np.testing.assert_array_equal(restored.transform(X), embedding)


def at(path, value):
    """Return a change of one entry of a configuration; `...` removes it."""

    def change(config):
        *parents, last = path.split(".")
        for name in parents:
            config = config[name]
        if value is ...:
            del config[last]
        else:
            config[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("class", "os.system"), "os.system.*(not a PulseTransformer|is unknown; known are .*)"),
        (at("class", "../../x"), r"\.\./\.\./x.*(not a PulseTransformer|is unknown; known are .*)"),
        (at("class", ["PulseTransformer"]), "'class'"),
        (at("class", ...), "lacks 'class'"),
        (at("parameters", ...), "lacks 'parameters'"),
        (at("parameters", []), "'parameters' is .* wrong type"),
        (at("parameters.n_heads", 4), "no parameter 'n_heads' .*written by .*install"),
        (at("parameters.device", "cuda"), "no parameter 'device' that a file may set"),
        (at("parameters.checkpoint_dir", "/etc"), "no parameter 'checkpoint_dir'"),
        (at("parameters.callbacks", ["print"]), "callbacks come from no file"),
        (
            at("parameters.callbacks", {"array": [1, 2], "dtype": "<i8"}),
            "callbacks come from no file",
        ),
        (at("parameters.embedding_dim", -1), "embedding_dim must be an integer of at least 1"),
        (at("parameters.embedding_dim", "8"), "embedding_dim must be an integer"),
        (at("parameters.embedding_dim", 9), "is torch.float32 of shape .*, but the model has"),
        (at("parameters.embedding_dim", 10**15), "model that can be loaded"),
        (at("parameters.embedding_dim", 10**30), "model that can be loaded"),
        (at("parameters.pooling", "median"), "pooling must be one of 'max', 'mean'"),
        (at("parameters.pooling", {"import": "os"}), r"unknown entries \['import'\]"),
        (at("parameters.lr", {"float": "nan"}), "lr must be a number"),
        (at("parameters.lr", {"float": "1"}), "unknown entries"),
        (at("parameters.lr", {"pairs": [[1]]}), "no pair of a key and a value"),
        (at("parameters.lr", {"pairs": [[[1], 2]]}), "a key .* is neither text nor a number"),
        (at("parameters.lr", {"array": [[1], [2, 3]], "dtype": "<f8"}), "loaded: .*sequence"),
        (at("parameters.lr", {"array": ["a"], "dtype": "<f8"}), "loaded: .*string"),
        (at("parameters.lr", {"array": ["a"], "dtype": "<U99999999"}), "no array of dtype"),
        (at("parameters.random_state", "now"), "cannot be used to seed"),
        (at("fitted", ...), "lacks 'fitted'"),
        (at("fitted.n_channels_in_", ...), "lacks 'n_channels_in_'"),
        (at("fitted.n_channels_in_", 0), "0 channels"),
        (at("fitted.n_channels_in_", None), "None channels"),
        (at("fitted.n_channels_in_", True), "wrong type"),
        (at("fitted.n_channels_in_", 3), "n_features_in_=2 does not go"),
        (at("fitted.n_timesteps_in_", -4), "-4 time steps"),
        (at("fitted.n_timesteps_in_", "16"), "wrong type"),
        (at("fitted.n_features_in_", 16), "n_features_in_=16 does not go"),
        (at("fitted_on_table", True), "does not go with the shape"),
        (at("fitted_on_table", 1), "wrong type"),
        (at("fitted.net_", 1), "may not set the attribute 'net_'"),
        (at("fitted.transform", 1), "may not set the attribute 'transform'"),
        (at("fitted.__class__", 1), "may not set the attribute '__class__'"),
        (at("fitted.encoder_", 1), "may not set the attribute 'encoder_'"),
        (at("fitted.feature_names_in_", ["a", "b"]), "feature_names_in_ must be"),
        (at("fitted.channel_scale_", 1.0), "channel_scale_ must hold 2 positive numbers"),
        (at("fitted.channel_scale_", {"array": [1, 0], "dtype": "<f8"}), "channel_scale_ must"),
        (at("training", ...), "lacks 'training'"),
        (at("training.history", {}), "'history'"),
        (at("training.history", [1]), "one dictionary of scalars per epoch"),
        (at("training.history", [{"batches": 1}]), "one dictionary of scalars per epoch"),
        (at("training.selected_epoch", 2), "epoch 2 is selected out of 2"),
        (at("training.selected_epoch", -1), "epoch -1 is selected"),
        (at("training.selected_epoch", True), "wrong type"),
        (at("training.n_earlier", 3), "3 epochs are of earlier fits, out of 2"),
        (at("training.n_earlier", -1), "-1 epochs are of earlier fits"),
        (at("training.n_earlier", None), "wrong type"),
        (at("weights", None), "'weights'"),
    ],
)
def test_a_configuration_that_makes_no_sense(folder, change, message):
    config = read_config(folder)
    change(config)
    write_config(folder, config)
    refuses(folder, message)


@pytest.mark.parametrize(
    "cls", [CrossPredictionTransformer, PatchTSTTransformer, SimMTMTransformer, RhythmTransformer]
)
def test_only_converted_weights_lack_the_length_of_windows(cls, tmp_path):
    small(cls).fit(X).save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    config["fitted"]["n_timesteps_in_"] = None
    write_config(tmp_path / "model", config)
    with pytest.raises(ValueError, match=f"n_timesteps_in_ is null, but {cls.__name__} needs it"):
        cls.from_pretrained(tmp_path / "model")


def test_names_of_columns_must_be_those_of_a_table(tmp_path):
    folder = tmp_path / "table"
    pulse().fit(X[:, :, 0]).save_pretrained(folder)
    good = read_config(folder)
    names = {"dtype": "O", "array": [f"step {i}" for i in range(16)]}
    for array in ([1] * 16, ["a"] * 15, "a", [["a"]] * 16):
        config = copy.deepcopy(good)
        config["fitted"]["feature_names_in_"] = names | {"array": array}
        write_config(folder, config)
        refuses(folder, "feature_names_in_ must be 16 strings")
    good["fitted"]["feature_names_in_"] = names
    write_config(folder, good)
    assert PulseTransformer.from_pretrained(folder).feature_names_in_[3] == "step 3"


def test_an_older_file_that_lacks_a_parameter_gets_the_default(folder, embedding):
    config = read_config(folder)
    del config["parameters"]["batch_size"]
    write_config(folder, config)
    restored = PulseTransformer.from_pretrained(folder)
    assert restored.batch_size == PulseTransformer().batch_size
    np.testing.assert_array_equal(restored.transform(X), embedding)


# --- model.safetensors ---


def header(content):
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(entries, data):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def rename(state):
    state["encoder.norm.wait"] = state.pop("encoder.norm.weight")
    return state


def without(state):
    del state["decoder.gru.bias_hh_l0"]
    return state


NORM = "encoder.norm.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without, "lacks 'decoder.gru.bias_hh_l0'"),
        (rename, "no weights named 'encoder.norm.wait'"),
        (lambda state: state | {"../../evil": torch.ones(1)}, r"no weights named '\.\./\.\./evil'"),
        (lambda state: {}, "lacks 'decoder.gru.bias_hh_l0'"),
        (lambda state: state | {NORM: torch.ones(9)}, r"'encoder.norm.weight' is .*\(9,\).*\(8,\)"),
        (lambda state: state | {NORM: state[NORM].half()}, "float16 of shape .* has torch.float32"),
        (lambda state: state | {NORM: state[NORM].double()}, "float64"),
        (lambda state: state | {NORM: torch.full((8,), torch.inf)}, "NaN or infinite"),
        (lambda state: state | {NORM: torch.full((8,), torch.nan)}, "NaN or infinite"),
    ],
)
def test_weights_that_do_not_fit_the_model_are_refused(folder, change, message):
    change_weights(folder, change)
    refuses(folder, message)


def test_weights_of_another_model(folder, tmp_path):
    other = tmp_path / "other"
    pulse(random_state=1).fit(X).save_pretrained(other)
    shutil.copy(other / "model.safetensors", folder)
    refuses(folder, "model.safetensors is damaged or of another model: it has another checksum")


def test_truncated_weights_are_damaged(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    refuses(folder, "damaged .*bytes, not")


def test_a_safetensors_file_that_begins_like_a_pickle_is_not_called_one(folder):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    n = int.from_bytes(content[:8], "little")
    padded = content[8 : 8 + n] + b" " * ((128 - n) % 256)
    path.write_bytes(len(padded).to_bytes(8, "little") + padded + content[8 + n :])
    assert path.read_bytes()[:1] == pickle.dumps(0)[:1]
    refuses(folder, r"damaged .*Copy the folder again\.$")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[:5],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: struct.pack("<Q", 2**63) + content[8:],
        lambda content: struct.pack("<Q", 10**8 + 1) + content[8:],
        lambda content: struct.pack("<Q", 10) + content[8:],
        lambda content: with_header({}, content),
        lambda content: with_header({NORM: {"dtype": "F32"}}, b""),
        lambda content: with_header(
            {NORM: {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"x"
        ),
        lambda content: with_header(
            {NORM: {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 32]}}, b"x" * 32
        ),
        lambda content: with_header(
            {NORM: {"dtype": "F32", "shape": [-8], "data_offsets": [0, 32]}}, b"x" * 32
        ),
        lambda content: with_header(
            {NORM: {"dtype": "F32", "shape": [8], "data_offsets": [0, 2**60]}}, b"x" * 32
        ),
        lambda content: with_header(header(content)[0] | {"x": "y"}, header(content)[1]),
    ],
)
def test_no_safetensors_file_though_its_checksum_is_right(folder, spoil):
    write_weights(folder, spoil((folder / "model.safetensors").read_bytes()))
    refuses(folder, "model.safetensors is no safetensors file.*Save the model again")


def test_a_checksum_that_is_no_text(folder):
    for weights in ({}, {"n_bytes": [], "sha256": {}}, {"n_bytes": 10**400, "sha256": 1}):
        write_config(folder, read_config(folder) | {"weights": weights})
        refuses(folder, "model.safetensors is damaged")


# --- nothing is executed ---


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


BOMBS = {
    "pickle": pickle.dumps,
    "old pickle": lambda bomb: pickle.dumps(bomb, protocol=0),
    "torch": None,
    "LFS": lambda bomb: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
}


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_pickle_is_not_run(folder, tmp_path, kind, sealed):
    marker = tmp_path / "executed"
    if kind == "torch":
        torch.save({"encoder": Bomb(marker)}, folder / "model.safetensors")
        content = (folder / "model.safetensors").read_bytes()
    else:
        content = BOMBS[kind](Bomb(marker))
    if sealed:
        write_weights(folder, content)
    else:
        (folder / "model.safetensors").write_bytes(content)
    hint = {"pickle": "pickle, which can run", "torch": "torch.save, which", "LFS": "git lfs pull"}
    refuses(folder, f"model.safetensors is .*{hint.get(kind, '')}")
    (folder / "config.json").write_bytes(content)
    refuses(folder, "config.json is not JSON")
    assert not marker.exists()
    if kind == "pickle":  # the bomb works where it is let
        pickle.loads(content).close()
        assert marker.exists()


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_damage_gives_the_same_model_or_a_clean_error(saved, embedding, tmp_path, data):
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)
    path = folder / data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "replace"]))
    if kind == "flip":
        content[position] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[position : position + data.draw(st.integers(1, 10_000))]
    elif kind == "insert":
        content[position:position] = data.draw(st.binary(min_size=1, max_size=20))
    else:
        content[position : position + 4] = data.draw(st.binary(min_size=4, max_size=4))
    path.write_bytes(content)
    try:
        restored = PulseTransformer.from_pretrained(folder)
    except (ValueError, OSError) as error:
        assert re.search("config.json|model.safetensors", str(error))
    else:
        np.testing.assert_array_equal(restored.transform(X), embedding)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 99) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tuple", "float", "array", "dtype"]) | st.text(max_size=5),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_value_anywhere_is_a_model_or_a_clean_error(saved, tmp_path, data):
    """With valid checksums, as somebody who means harm would write it."""
    folder = tmp_path / "hostile"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)
    config = read_config(folder)
    entries = config
    while True:
        name = data.draw(st.sampled_from(sorted(entries)) | st.text(max_size=5))
        inner = entries.get(name)
        if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
            break
        entries = inner
    entries[name] = data.draw(JSON)
    write_config(folder, config)
    try:
        restored = PulseTransformer.from_pretrained(folder)
    except (ValueError, OSError) as error:
        assert str(folder) in str(error)
    else:
        assert restored.transform(X).shape == (20, 8)


@pytest.mark.parametrize("read", [PulseTransformer.from_pretrained, load_pretrained])
def test_what_is_no_path_is_refused_by_the_name_of_the_parameter(read):
    with pytest.raises(TypeError, match="folder must be a path .* got 3"):
        read(3)
    with pytest.raises(ValueError, match="folder must be a path .* got ''"):
        read("")
