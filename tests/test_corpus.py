"""Corpora are embedded chunk by chunk, resumably, with the bits of `transform`."""

import contextlib
import os
import shutil
import sys
import threading
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_pulse import CrossPredictionTransformer, RandomEncoderTransformer
from sklearn_pulse.corpus import dask_workers, embed_dataset, fit_dataset
from sklearn_pulse.corpus._spread import spread
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import LazyWindows, RecordingFile, open_recordings, sliding_windows
from tests.helpers import SMALL_ENCODER, full_disk, make_windows, small

zarr = pytest.importorskip("zarr")
da = pytest.importorskip("dask.array")
X, _ = make_windows(20)
STATISTICS = StatisticsTransformer().fit(X)
closed_form = partial(small, CrossPredictionTransformer)


class Killing(TransformerMixin, BaseEstimator):
    """Statistics, until a number of windows was seen."""

    def __init__(self, left):
        self.left = left

    def transform(self, windows):
        if len(windows) > 1 or not isinstance(windows, np.ndarray):  # no sample
            self.left -= len(windows)
        if self.left < 0:
            raise KeyboardInterrupt
        return STATISTICS.transform(windows)


class Counted(LazyWindows):
    """Windows that note how many of them are read at a time, and in all."""

    shape = X.shape

    def __init__(self):
        self.read = []

    def take(self, indices):
        self.read.append(len(indices))
        return X[indices]


class SignedFor(LazyWindows):
    """Windows that note in a folder which processes read them."""

    shape = X.shape

    def __init__(self, folder):
        self.folder = folder

    def take(self, indices):
        (self.folder / str(os.getpid())).touch()
        return X[indices]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    recordings = [rng.normal(size=(n, 2)).astype(np.float32) for n in (70, 40, 90)]
    (tmp_path / "recordings" / "b").mkdir(parents=True)
    for name, recording in zip(("a", "b/0", "b/1"), recordings, strict=True):
        np.save(tmp_path / "recordings" / f"{name}.npy", recording)
    return tmp_path / "recordings", recordings


@pytest.fixture
def in_pieces(monkeypatch):
    """The closed form fits scales on a sample of ten windows, and sums over pieces of six."""
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 10)
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", 6)


def test_every_source_has_the_bits_of_transform(tmp_path, folder):
    path, recordings = folder
    w = sliding_windows(recordings, 16, 8)
    pipeline = make_pipeline(
        RandomEncoderTransformer(**SMALL_ENCODER, random_state=0), StandardScaler()
    )
    pipeline.fit(w.X)
    expected = pipeline.transform(w.X)
    lazy = sliding_windows(recordings, 16, 8, lazy=True).X
    blocks = da.from_array(w.X, chunks=(7, 8, 2))
    sources = {"array": w.X, "lazy": lazy, "dask": blocks, "named": str(path)}
    for name, source in sources.items():
        cut = {"length": 16, "stride": 8} if name == "named" else {}
        sink = zarr.open_group(tmp_path / name) if name == "array" else tmp_path / name
        group = embed_dataset(
            pipeline, source, sink, chunk_size=None if name == "dask" else 6, **cut
        )
        np.testing.assert_array_equal(group["embedding"][:], expected)
        assert group["embedding"].chunks[0] == (7 if name == "dask" else 6)
        assert group["done"][:].all()
    np.testing.assert_array_equal(group["recording"][:], w.recording)
    np.testing.assert_array_equal(group["start"][:], w.start)
    assert group.attrs["recordings"] == ["a.npy", "b/0.npy", "b/1.npy"]


@pytest.mark.parametrize("shape", [(20, 16), (20, 2, 8, 2)])
def test_tables_and_bags(tmp_path, shape):
    values = np.resize(X, shape)
    statistics = StatisticsTransformer().fit(values)
    group = embed_dataset(statistics, da.from_array(values, chunks=8), tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], statistics.transform(values))


def test_a_killed_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed_dataset(Killing(19), X, tmp_path / "z", chunk_size=4)
    group = zarr.open_group(tmp_path / "z")
    done = group["done"][:]
    assert done.any() and not done.all()
    # What was being written when the kill came: a file that is cut short.
    number = int(np.flatnonzero(~done)[0])
    chunk = tmp_path / "z" / "embedding" / "c" / str(number) / "0"
    chunk.parent.mkdir(parents=True, exist_ok=True)
    chunk.write_bytes(b"half")
    embed_dataset(STATISTICS, X, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert group["done"][:].all()


def test_complete_chunks_are_not_read_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed_dataset(Killing(19), Counted(), tmp_path / "z", chunk_size=4)
    n_done = int(zarr.open_group(tmp_path / "z")["done"][:].sum())
    source = Counted()
    embed_dataset(STATISTICS, source, tmp_path / "z")
    assert sum(source.read) == 8 + 20 - 4 * n_done  # 8 windows know the source again
    assert max(source.read) == 4


@pytest.mark.parametrize("file", ["zarr.json", "done/c/0", "done/zarr.json", "sample/c/0/0"])
def test_a_damaged_sink_is_named(tmp_path, file):
    embed_dataset(STATISTICS, X, tmp_path / "z")
    (tmp_path / "z" / file).write_bytes((tmp_path / "z" / file).read_bytes()[:3])
    with pytest.raises(ValueError, match="sink holds files that are damaged, or lacks some"):
        embed_dataset(STATISTICS, X, tmp_path / "z")


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("zarr.json", b'"attributes"', b'"attrabutes"'),  # TypeError
        ("zarr.json", b"source", b"s\xffurce"),  # UnicodeDecodeError
        ("done/zarr.json", b'"regular"', b'"ragular"'),  # ValueError
        ("done/zarr.json", b'"checksum"', b'"chacksum"'),  # TypeError
        ("sample/zarr.json", b'"zstd"', b'"zstt"'),  # UnknownCodecError
        ("embedding/zarr.json", b'"node_type"', b'"node_typd"'),  # MetadataValidationError
        ("embedding/zarr.json", b'"little"', b'"lattle"'),  # ValueError
        ("embedding/zarr.json", b"20,", b"22,"),  # no error of zarr: two rows more, of zeros
    ],
)
def test_damaged_metadata_are_named(tmp_path, file, before, after):
    embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
    content = (tmp_path / "z" / file).read_bytes()
    assert before in content
    (tmp_path / "z" / file).write_bytes(content.replace(before, after, 1))
    with pytest.raises(ValueError, match="^sink holds files that are damaged.* delete this one"):
        embed_dataset(STATISTICS, X, tmp_path / "z")


def finished_sink(where, tmp_path, **settings):
    """A finished sink, to be passed on, and a function that changes its values by their keys."""
    if where == "memory":
        values = {}
        sink = zarr.open_group(zarr.storage.MemoryStore(values), path="a/z", **settings)
        embed_dataset(STATISTICS, X, sink, chunk_size=4)
        return sink, lambda key: values.pop(f"a/z/{key}")
    sink = zarr.open_group(tmp_path / "z", **settings)
    embed_dataset(STATISTICS, X, sink, chunk_size=4)
    return tmp_path / "z", lambda key: (tmp_path / "z" / key).unlink()


@pytest.mark.parametrize("where", ["path", "memory"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_lost_chunks_are_embedded_again(tmp_path, where, zarr_format):
    sink, lose = finished_sink(where, tmp_path, zarr_format=zarr_format)
    for number in (1, 4):
        lose(f"embedding/{number}.0" if zarr_format == 2 else f"embedding/c/{number}/0")
    source = Counted()
    group = embed_dataset(STATISTICS, source, sink)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert group["done"][:].all()
    assert sum(source.read) == 8 + 2 * 4  # 8 windows know the source again


def test_a_chunk_that_was_cut_to_nothing_is_embedded_again(tmp_path):
    embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
    (tmp_path / "z" / "embedding" / "c" / "2" / "0").write_bytes(b"")
    group = embed_dataset(STATISTICS, X, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


def test_lost_chunks_are_found_behind_a_relative_path(tmp_path, monkeypatch):
    """Here zarr's own list of keys drops each c/, the name of the folder."""
    monkeypatch.chdir(tmp_path)
    source = Counted()
    for _ in range(2):
        embed_dataset(STATISTICS, source, zarr.open_group("c"), chunk_size=4)
    assert sum(source.read) == 8 + 20 + 8


@pytest.mark.parametrize("where", ["path", "memory"])
def test_chunks_of_zeros_are_not_lost(tmp_path, where):
    sink = tmp_path / "z" if where == "path" else zarr.open_group(zarr.storage.MemoryStore())
    source, zeros = Counted(), FunctionOf(lambda rows: 0 * STATISTICS.transform(rows))
    for _ in range(2):
        embed_dataset(zeros, source, sink, chunk_size=4)
    assert sum(source.read) == 8 + 20 + 8


@pytest.mark.parametrize("name", ["sample", "recording", "start"])
def test_what_is_written_at_the_beginning_is_refused_if_it_is_lost(tmp_path, name):
    lazy = sliding_windows(X[:1], 8, lazy=True).X  # of one recording, number 0
    statistics = StatisticsTransformer().fit(np.asarray(lazy))
    embed_dataset(statistics, lazy, tmp_path / "z")
    embed_dataset(statistics, lazy, tmp_path / "z")
    shutil.rmtree(tmp_path / "z" / name / "c")
    with pytest.raises(ValueError, match=f"sink .* lacks some .'chunks of {name}'.*delete this"):
        embed_dataset(statistics, lazy, tmp_path / "z")


@pytest.mark.parametrize("kept", [-9, 40, 1])
def test_a_damaged_chunk_without_a_mark_is_embedded_again(tmp_path, kept):
    """As docs/scaling.md says."""
    embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
    path = tmp_path / "z" / "embedding" / "c" / "2" / "0"
    path.write_bytes(path.read_bytes()[:kept])
    source = Counted()
    group = embed_dataset(STATISTICS, source, tmp_path / "z")
    with pytest.raises(RuntimeError, match="Zstd"):
        group["embedding"][9]
    group["done"][9 // group["embedding"].chunks[0]] = False
    group = embed_dataset(STATISTICS, source, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert sum(source.read) == 8 + 8 + 4


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_flipped_bit_raises(tmp_path, zarr_format):
    group = zarr.open_group(tmp_path / "z", zarr_format=zarr_format)
    embed_dataset(STATISTICS, X, group, chunk_size=4)
    for name, chunk in {"embedding": "1/0", "done": "0"}.items():
        key = chunk.replace("/", ".") if zarr_format == 2 else f"c/{chunk}"
        path = tmp_path / "z" / name / key
        content = bytearray(path.read_bytes())
        content[-5] ^= 4  # the last of the values, before four bytes of checksum
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="checksum"):
            group[name][:]
    with pytest.raises(ValueError, match="sink holds files that are damaged.*checksum.*delete"):
        embed_dataset(STATISTICS, X, tmp_path / "z")


def test_a_sink_of_an_earlier_version_is_returned_as_before(tmp_path):
    """It has no chunks of zeros, so that an absent one is no sign of damage."""
    group = embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
    del group.attrs["stored_whole"]
    (tmp_path / "z" / "embedding" / "c" / "1" / "0").unlink()
    group = embed_dataset(STATISTICS, X, tmp_path / "z")
    assert not group["embedding"][4:8].any()
    assert group["embedding"][8:].any() and group["done"][:].all()


def test_a_sink_that_was_half_created_is_created_again(tmp_path, monkeypatch):
    create = zarr.Group.create_array

    def killed(self, name, **settings):
        if name == "start":
            raise KeyboardInterrupt
        return create(self, name, **settings)

    lazy = sliding_windows(X, 16, lazy=True).X
    monkeypatch.setattr(zarr.Group, "create_array", killed)
    with pytest.raises(KeyboardInterrupt):
        embed_dataset(STATISTICS, lazy, tmp_path / "z")
    monkeypatch.undo()
    group = embed_dataset(STATISTICS, X, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert "recording" not in group  # X names none, unlike the lazy windows of the first run


def test_the_folder_of_the_recordings_is_no_sink(folder):
    """The first call wrote there, and no later one went on, since the folder was one of Zarr."""
    statistics = StatisticsTransformer().fit(X)
    with pytest.raises(ValueError, match="is the folder of the recordings"):
        embed_dataset(statistics, folder[0], str(folder[0]), length=16)
    group = embed_dataset(statistics, folder[0], folder[0] / "sink.zarr", length=16)
    assert group["done"][:].all()


def test_another_run_is_refused(tmp_path):
    embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
    other = make_pipeline(STATISTICS, StandardScaler()).fit(X)
    with pytest.raises(ValueError, match="begun with another transformer: .* delete this one"):
        embed_dataset(other, X, tmp_path / "z")
    with pytest.raises(ValueError, match="begun with another source"):
        embed_dataset(STATISTICS, X + 1, tmp_path / "z")
    with pytest.raises(ValueError, match="begun with another source"):
        embed_dataset(STATISTICS, X[:19], tmp_path / "z")
    with pytest.raises(ValueError, match="begun with chunk_size=4, got 5"):
        embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=5)
    foreign = zarr.open_group(tmp_path / "foreign")
    foreign.create_array("embedding", data=np.zeros(3))
    with pytest.raises(ValueError, match="holds 'embedding' already, which embed_dataset has not"):
        embed_dataset(STATISTICS, X, foreign)


def test_a_chunk_is_no_larger_than_the_corpus(tmp_path):
    """Zarr holds a whole chunk in memory, whatever part of it there is."""
    for _ in range(2):  # the second run finds the first
        group = embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=100_000)
        assert group["embedding"].chunks[0] == len(X)
        np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


def test_a_sink_without_a_complete_chunk_is_begun_anew(tmp_path):
    """What the first run was refused for is mended: another source or chunk."""
    spoilt = X.copy()
    spoilt[1] = np.inf  # a window that the sample leaves out
    with pytest.raises(ValueError, match="windows 0 to 3 of source .*infinity.*sample 1"):
        embed_dataset(STATISTICS, spoilt, tmp_path / "z", chunk_size=4)
    mended = np.delete(spoilt, 1, axis=0)
    group = embed_dataset(STATISTICS, mended, tmp_path / "z", chunk_size=5)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(mended))
    with pytest.raises(ValueError, match="begun with another source"):
        embed_dataset(STATISTICS, X, tmp_path / "z")


def test_a_sink_that_another_call_begins_anew_is_not_mixed(tmp_path):
    """Both calls returned, and the sink held rows of two transformers, each marked as complete."""

    class Disturbed(TransformerMixin, BaseEstimator):
        def transform(self, windows):
            if [path.name for path in (tmp_path / "z" / "embedding").glob("*")] == ["zarr.json"]:
                embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4)
            return STATISTICS.transform(windows) + 1

    with pytest.raises(ValueError, match="sink was begun anew by another call"):
        embed_dataset(Disturbed(), X, tmp_path / "z", chunk_size=4)
    group = embed_dataset(STATISTICS, X, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_sink_may_be_the_address_of_a_folder(tmp_path, host):
    path = tmp_path / "my sink"
    address = path.as_uri().replace("file://", f"file://{host}")
    assert "%20" in address
    for _ in range(2):  # the second run finds the first
        group = embed_dataset(STATISTICS, X, address, chunk_size=4)
        np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert (path / "zarr.json").is_file()


@pytest.mark.parametrize("address", ["file://server/z", "file://z", "file:///", "file://"])
def test_the_address_of_another_machine(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"^sink='{address}' names no file of this machine: write"):
        embed_dataset(STATISTICS, X, address)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:Channel 0 of X is")
def test_a_transformer_is_known_by_every_feature(tmp_path):
    """One feature near a million does not hide that another has changed."""
    counts = 1e6 + 100 * X
    embed_dataset(STATISTICS, counts, tmp_path / "z")
    smoothed = make_pipeline(FunctionTransformer(smooth), STATISTICS)
    before, after = (t.transform(counts) for t in (STATISTICS, smoothed))
    assert np.abs(after - before).max() < 1e-3 * np.abs(before).max()
    with pytest.raises(ValueError, match="begun with another transformer"):
        embed_dataset(smoothed, counts, tmp_path / "z")
    rounded = make_pipeline(STATISTICS, FunctionTransformer(lambda Z: Z * (1 + 1e-6)))
    embed_dataset(rounded, counts, tmp_path / "z")


@pytest.mark.parametrize(
    ("where", "added", "is_known"),
    [
        ((slice(None), slice(None)), 3e-6, True),  # as another processor does
        ((slice(None), slice(None)), 1e-4, False),
        ((slice(None), 0), 0.01, False),
        ((0, 0), 1.0, False),
    ],
)
def test_a_few_features_may_be_rounded_to_the_next_hundredth(tmp_path, where, added, is_known):
    directions = np.random.default_rng(0).normal(size=(X[0].size, 2000)) / 4

    def features(windows, added=0.0):
        rows = windows.reshape(len(windows), -1) @ directions
        rows[where] += added
        return np.round(rows, 2)

    other = FunctionOf(partial(features, added=added))
    sampled = X[:8]  # all of them
    embed_dataset(FunctionOf(features), sampled, tmp_path / "z")
    assert (features(sampled) != other.transform(sampled)).any()
    if is_known:
        embed_dataset(other, sampled, tmp_path / "z")
        return
    with pytest.raises(ValueError, match="begun with another transformer"):
        embed_dataset(other, sampled, tmp_path / "z")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_transformer_is_known_where_a_feature_is_not_finite(tmp_path, value):
    def embedding(factor):
        def features(windows):
            rows = factor * STATISTICS.transform(windows)
            return np.hstack([rows, np.full((len(rows), 1), value, rows.dtype)])

        return FunctionOf(features)

    for _ in range(2):
        embed_dataset(embedding(1), X, tmp_path / "z")
    with pytest.raises(ValueError, match="begun with another transformer"):
        embed_dataset(embedding(1.1), X, tmp_path / "z")


def test_embeddings_of_another_precision_are_refused(tmp_path):
    """Half of the rows would be rounded."""
    embed_dataset(STATISTICS, X, tmp_path / "z")
    with pytest.raises(ValueError, match="begun with another transformer"):
        embed_dataset(make_pipeline(STATISTICS, FunctionTransformer(np.float64)), X, tmp_path / "z")


def test_numbers_held_as_objects_are_known_again(tmp_path):
    for _ in range(2):
        group = embed_dataset(STATISTICS, np.array(X.tolist(), dtype=object), tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


@pytest.mark.filterwarnings("ignore:Object at done is not recognized")
def test_marks_that_a_deletion_left_behind_do_not_count(tmp_path):
    embed_dataset(STATISTICS, X, tmp_path / "z")
    for path in (tmp_path / "z").rglob("*"):  # as when deleting the folder was broken off
        if path.is_file() and path.name == "zarr.json":
            path.unlink()
    shutil.rmtree(tmp_path / "z" / "embedding")
    shutil.rmtree(tmp_path / "z" / "sample")
    group = embed_dataset(STATISTICS, X + 1, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X + 1))


def smooth(windows):
    return (windows + np.roll(windows, 1, axis=1)) / 2


@pytest.mark.filterwarnings("ignore:.*tasks which were still being processed:UserWarning")
@pytest.mark.parametrize("interrupted", ["embed", "fit"])
def test_an_interrupt_leaves_joblib_as_it_was(tmp_path, monkeypatch, interrupted):
    """Even while the error, and with it the frames that it passed, is kept."""
    distributed = pytest.importorskip("distributed")

    def interrupt(*args, **kwargs):
        @contextlib.contextmanager
        def bar():
            def advance(n):
                raise KeyboardInterrupt

            yield advance

        return bar()

    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 10)
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", 10)
    for name in ("corpus._embed", "_closed_form._preparation"):
        monkeypatch.setattr(f"sklearn_pulse.{name}.progress_bar", interrupt)
    with distributed.Client(processes=False, dashboard_address=":0") as client:
        before = type(joblib.parallel.get_active_backend()[0]), client.amm.running()
        with pytest.raises(KeyboardInterrupt) as kept:
            if interrupted == "embed":
                embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4, verbose=1)
            else:
                fit_dataset(closed_form(verbose=1), X)
        assert kept.tb is not None
        assert (type(joblib.parallel.get_active_backend()[0]), client.amm.running()) == before


class TakenAlone(LazyWindows):
    """Windows that a class of the user's own reads, which defines no selection."""

    shape = X.shape

    def take(self, indices):
        return X[indices]


def test_windows_of_an_own_class_are_preprocessed_and_embedded(tmp_path):
    scaled = WindowScaler(per="window").fit_transform(TakenAlone())
    expected = WindowScaler(per="window").fit_transform(X)
    np.testing.assert_array_equal(scaled[3:6], expected[3:6])
    assert scaled.take([]).shape == (0, *X.shape[1:])
    group = embed_dataset(STATISTICS, scaled, tmp_path / "z", chunk_size=8)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(expected))
    square = WindowScaler(per="window").fit_transform(sliding_windows([X[0]], 2, lazy=True).X)
    transposed = StatisticsTransformer(input_layout="nct").fit(np.asarray(square))
    with pytest.raises(ValueError, match="whose channels are last: fit with input_layout='ntc'"):
        embed_dataset(transposed, square, tmp_path / "transposed")


def test_each_recording_has_its_own_name(tmp_path, folder):
    path, recordings = folder
    w = sliding_windows([recordings[2], *open_recordings(path)], 16, lazy=True)
    group = embed_dataset(STATISTICS, w.X, tmp_path / "mixed")
    names = np.array(group.attrs["recordings"], dtype=object)
    assert names.tolist() == [None, "a.npy", "b/0.npy", "b/1.npy"]
    assert set(names[group["recording"][:4]]) == {None}
    scaled = WindowScaler(per="recording").fit_transform(w.X)
    group = embed_dataset(STATISTICS, scaled, tmp_path / "scaled")
    assert group.attrs["recordings"] == names.tolist()
    numbered = WindowScaler(per="window").fit_transform(w.X)
    numbered.recording = 7 + w.X.recording
    group = embed_dataset(STATISTICS, numbered, tmp_path / "numbered")
    assert group.attrs["recordings"] == []


def test_a_dask_array_that_float32_does_not_hold_is_warned_of():
    offset = X.astype(np.float64) + 1e7
    groups = np.arange(len(X)) // 10
    for source in (offset, da.from_array(offset, chunks=(5, -1, -1))):
        with pytest.warns(UserWarning, match="float32 does not hold the variation of X"):
            fit_dataset(closed_form(), source, groups=groups)


def test_a_full_disk_is_told_and_the_next_call_goes_on(tmp_path):
    windows = make_windows(400, 16, 2)[0]
    for n_bytes in (100, 3000):  # the group cannot be begun, and the first chunk not be written
        with full_disk(n_bytes), pytest.raises(OSError, match="sink cannot be written .* free spa"):
            embed_dataset(STATISTICS, windows, tmp_path / "z", chunk_size=200)
    group = embed_dataset(STATISTICS, windows, tmp_path / "z", chunk_size=200)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(windows))


def test_scaling_by_recording_comes_before_the_chunks(tmp_path, folder):
    w = sliding_windows(list(open_recordings(folder[0])), 16, lazy=True)
    chain = make_pipeline(WindowScaler(per="recording"), clone(STATISTICS)).fit(w.X)
    inside = make_pipeline(chain[:1], chain[1:]), make_pipeline(chain), FrozenEstimator(chain)
    for step in (chain, chain[:1], *inside):
        with pytest.raises(ValueError, match="let it transform lazy windows first"):
            embed_dataset(step, w.X, tmp_path / "chain")
    group = embed_dataset(chain[1:], chain[:1].transform(w.X), tmp_path / "steps")
    np.testing.assert_array_equal(group["embedding"][:], chain.transform(w.X))
    chain[0].set_params(per="window")  # which only another fit reads
    with pytest.raises(ValueError, match="let it transform lazy windows first"):
        embed_dataset(chain, w.X, tmp_path / "chain")
    chain[0].set_params(per="recording")
    by_window = make_pipeline(WindowScaler(per="window"), clone(STATISTICS)).fit(w.X)
    expected = by_window.transform(w.X)
    by_window[0].set_params(per="recording")
    group = embed_dataset(by_window, w.X, tmp_path / "by window")
    np.testing.assert_array_equal(group["embedding"][:], expected)
    bags = np.asarray(w.X)[None].repeat(2, axis=0)  # each is a whole recording
    group = embed_dataset(clone(chain).fit(bags), bags, tmp_path / "bags")
    assert group["embedding"].shape[0] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_names_of_files_need_not_be_text(tmp_path, folder):
    path = folder[0]
    os.rename(path / "a.npy", os.fsencode(path) + b"/a\xff.npy")
    for _ in range(2):
        group = embed_dataset(STATISTICS, path, tmp_path / "z", length=16)
    assert os.fsencode(group.attrs["recordings"][0]) == b"a\xff.npy"


def test_preprocessed_windows_keep_the_rate_of_their_time_index(tmp_path):
    index = pd.date_range("2020", periods=64, freq="10ms")
    w = sliding_windows([pd.DataFrame({"a": np.sin(np.arange(64.0))}, index=index)], 16, lazy=True)
    scaled = WindowScaler(per="window").fit_transform(w.X)
    statistics = StatisticsTransformer(sampling_rate=64).fit(X[:, :, :1])
    for name, source in {"plain": w.X, "scaled": scaled}.items():
        with pytest.raises(ValueError, match="X has 100 steps a second by its time index"):
            embed_dataset(statistics, source, tmp_path / name)


def test_refusals(tmp_path, folder):
    sink = tmp_path / "z"
    for empty in ({"sink": ""}, {"source": "", "length": 16}):
        with pytest.raises(ValueError, match="must be a path .*got ''"):
            embed_dataset(**{"transformer": STATISTICS, "source": X, "sink": sink} | empty)
    with pytest.raises(ValueError, match="length is missing"):
        embed_dataset(STATISTICS, folder[0], sink)
    np.save(tmp_path / "windows.npy", X)
    zarr.save_array(tmp_path / "windows.zarr", X)
    for name, remedy in (
        ("windows.npy", "is a file, .* numpy.load"),
        ("windows.zarr", "zarr.open"),
    ):
        with pytest.raises(ValueError, match=remedy):
            embed_dataset(STATISTICS, tmp_path / name, sink)
    for file in (tmp_path / "windows.npy", tmp_path / "windows.npy" / "z"):
        with pytest.raises(OSError, match="sink=.* is a file, or lies below one: name a folder"):
            embed_dataset(STATISTICS, X, file)
    with pytest.raises(ValueError, match="length=16 is for a folder"):
        embed_dataset(STATISTICS, X, sink, length=16)
    for function, transformer in ((embed_dataset, STATISTICS), (fit_dataset, closed_form())):
        further = (sink,) if function is embed_dataset else ()
        with pytest.raises(ValueError, match="input_layout='nct' is for a folder.* leave it out"):
            function(transformer, X, *further, input_layout="nct")
        for n_jobs, error in (
            ("2", TypeError),
            (1.5, TypeError),
            (True, TypeError),
            (0, ValueError),
        ):
            with pytest.raises(error, match="n_jobs must be None, a number of processes, or -1"):
                function(transformer, X, *further, n_jobs=n_jobs)
    with pytest.raises(TypeError, match=r"which Pipeline has not: .*pass pipeline\[:-1\]"):
        embed_dataset(make_pipeline(STATISTICS, Ridge()), X, tmp_path / "sink")
    with pytest.raises(
        TypeError, match="source must be a folder, a Dask array.*lazy=True.*.X, got"
    ):
        embed_dataset(STATISTICS, X.tolist(), sink)
    with pytest.raises(TypeError, match="source must be a folder.*, got list"):
        embed_dataset(STATISTICS, open_recordings(folder[0]), sink, length=16)
    with pytest.raises(TypeError, match="sink must be a path or a zarr.Group, got int"):
        embed_dataset(STATISTICS, X, 3)
    with pytest.raises(ValueError, match="source holds no window"):
        embed_dataset(STATISTICS, X[:0], sink)
    with pytest.raises(ValueError, match="chunk_size"):
        embed_dataset(STATISTICS, X, sink, chunk_size=0)
    with pytest.raises(NotFittedError):
        embed_dataset(StatisticsTransformer(), X, sink)
    with pytest.raises(ValueError, match="in the memory of this process"):
        embed_dataset(STATISTICS, X, zarr.open_group(zarr.storage.MemoryStore()), n_jobs=2)
    with zarr.storage.ZipStore(tmp_path / "z.zip", mode="w") as store:
        with pytest.raises(ValueError, match="sink is a zip file, where other processes cannot"):
            embed_dataset(STATISTICS, X, zarr.open_group(store), n_jobs=2)
    zarr.open_group(tmp_path / "kept")
    with pytest.raises(ValueError, match="sink is read-only: open it with mode='a'"):
        embed_dataset(STATISTICS, X, zarr.open_group(tmp_path / "kept", mode="r"))
    blocks = da.from_array(X)
    with pytest.raises(ValueError, match="of unknown shape: call source.compute_chunk_sizes"):
        embed_dataset(STATISTICS, blocks[blocks[:, 0, 0] > 0], sink)
    with pytest.raises(ValueError, match=r"must be a 3-D Dask array, got shape \(20, 16\)"):
        fit_dataset(closed_form(), blocks[:, :, 0])
    text = da.from_array(np.full(X.shape, "1", dtype=object), chunks=5)
    with pytest.raises(ValueError, match="source holds '1', which is no number"):
        fit_dataset(closed_form(), text)
    with pytest.raises(RuntimeError, match="No Dask client is active"), dask_workers(X):
        pass
    with pytest.raises(ValueError, match="needs a row of features per window"):
        embed_dataset(FunctionOf(np.ravel), X, sink)
    for kind in (object, str):
        with pytest.raises(ValueError, match="gives values of type .*needs a row of numbers"):
            embed_dataset(FunctionOf(lambda rows, as_=kind: rows[:, 0].astype(as_)), X, sink)
    with pytest.raises(
        TypeError, match="fit_dataset takes a CrossPredictionTransformer, got Ridge"
    ):
        fit_dataset(Ridge(), X)
    with pytest.raises(ValueError, match="transformer has input_layout='nct', but the windows of"):
        fit_dataset(CrossPredictionTransformer(input_layout="nct"), folder[0], length=16)
    swapped = StatisticsTransformer(input_layout="nct").fit(X[:, :2])  # as long as it is wide
    for transformer in (swapped, make_pipeline(swapped)):
        with pytest.raises(ValueError, match="last: .* that of embed_dataset is about the files"):
            embed_dataset(transformer, folder[0], sink, length=2)


class FunctionOf(TransformerMixin, BaseEstimator):
    def __init__(self, function):
        self.function = function

    def transform(self, windows):
        return self.function(windows)


@pytest.mark.parametrize("change", ["1 features of type int64", "3 features of type float64"])
def test_features_that_depend_on_the_chunk_are_refused(tmp_path, change):
    """Zarr would repeat a single feature, and cut fractions and missing values to integers."""

    def counts(rows):
        if len(rows) == 8:  # the sample
            return np.ones((8, 3), dtype=np.int64)
        return np.full((len(rows), int(change[0])), 1.5).astype(change.split()[-1])

    with pytest.raises(
        ValueError, match=f"windows 0 to 3 of source .*gives {change}, but 3 of type int64 for the"
    ):
        embed_dataset(FunctionOf(counts), X, tmp_path / "z", chunk_size=4)


def test_an_error_says_in_which_windows(tmp_path):
    broken = X.copy()
    broken[9, 3] = np.inf
    with pytest.raises(
        ValueError, match="windows 8 to 11 of source .sample 0 is window 8.: .*first in sample 1"
    ):
        embed_dataset(STATISTICS, broken, tmp_path / "z", chunk_size=4)
    broken[8, 3] = np.inf  # one of the windows by which the source is known
    with pytest.raises(
        ValueError, match=r"windows 0, 2, 5, 8, .*, 19 of source .*samples 0 to 7.*in sample 3\)"
    ):
        embed_dataset(STATISTICS, broken, tmp_path / "other", chunk_size=4)


@pytest.mark.xdist_group("workers")
def test_processes_give_the_bits_of_one(tmp_path, in_pieces):
    """They read the windows, of which this process reads but a sample."""
    for name in ("embed", "fit"):
        (tmp_path / name).mkdir()
    source = SignedFor(tmp_path / "embed")
    group = embed_dataset(STATISTICS, source, tmp_path / "z", chunk_size=4, n_jobs=2)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))
    assert group["done"][:].all()
    source, groups = SignedFor(tmp_path / "fit"), np.arange(20) // 10
    expected = closed_form(num_threads=1).fit(X, groups=groups)
    fitted = fit_dataset(closed_form(num_threads=1), source, groups=groups, n_jobs=2)
    np.testing.assert_array_equal(fitted.transform(X), expected.transform(X))
    for name in ("embed", "fit"):
        assert {str(os.getpid())} < {path.name for path in (tmp_path / name).iterdir()}


class Posted(RecordingFile):
    """A file that notes its name whenever it is pickled."""

    pickled = []

    def __getstate__(self):
        self.pickled.append(self.path.stem)
        return super().__getstate__()


@pytest.mark.xdist_group("workers")
@pytest.mark.parametrize("scaled", [False, True])
def test_processes_are_sent_the_recordings_that_they_need(tmp_path, scaled):
    values = np.random.default_rng(0).normal(size=(5, 48, 2)).astype(np.float32)
    for name, recording in zip("abcde", values, strict=True):
        np.save(tmp_path / f"{name}.npy", recording)
    files = [Posted(tmp_path / f"{name}.npy") for name in "abcde"]
    windows = sliding_windows(files, 16, lazy=True).X  # three of each file
    if scaled:
        windows = WindowScaler().fit_transform(windows)
    Posted.pickled.clear()
    group = embed_dataset(STATISTICS, windows, tmp_path / "z", chunk_size=3, n_jobs=2)
    assert sorted(Posted.pickled) == list("abcde")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(windows))
    assert group.attrs["recordings"] == [f"{name}.npy" for name in "abcde"]


class Noted:
    """A window of a Dask array, which notes whenever it is sent to a process."""

    pickled: list[int] = []
    shape, dtype, ndim = (1, *X.shape[1:]), X.dtype, 3

    def __init__(self, number):
        self.number = number

    def __getitem__(self, key):
        return X[self.number : self.number + 1][key]

    def __getstate__(self):
        self.pickled.append(self.number)
        return vars(self)


@pytest.mark.xdist_group("workers")
def test_processes_are_sent_the_tasks_that_they_need(tmp_path):
    """All tasks of a Dask array for each chunk would cost time with the square of the chunks."""
    blocks = da.concatenate([da.from_array(Noted(i), name=f"noted{i}") for i in range(len(X))])
    Noted.pickled.clear()
    group = embed_dataset(STATISTICS, blocks, tmp_path / "z", chunk_size=4, n_jobs=2)
    assert sorted(Noted.pickled) == list(range(len(X)))
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


@pytest.mark.xdist_group("workers")
@pytest.mark.parametrize("opened", [False, True])
def test_processes_of_another_working_folder_find_the_sink(tmp_path, monkeypatch, opened):
    """joblib's processes live on, in the folder where this process was when they were started."""
    joblib.Parallel(2)(joblib.delayed(os.getpid)() for _ in range(4))
    monkeypatch.chdir(tmp_path)
    sink = zarr.open_group("z") if opened else "z"
    group = embed_dataset(STATISTICS, X, sink, chunk_size=4, n_jobs=2)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


@pytest.mark.xdist_group("workers")
def test_a_sink_that_a_process_does_not_find_is_refused():
    """As a disk of this machine alone; its chunks would be marked, and stay zero."""
    pytest.importorskip("fsspec")
    with pytest.raises(ValueError, match="sink is not found by a process .*: pass a path that all"):
        embed_dataset(STATISTICS, X, "memory://of_one_process", chunk_size=4, n_jobs=2)
    group = embed_dataset(STATISTICS, X, "memory://of_one_process", chunk_size=4)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


def test_a_sink_is_found_after_the_working_folder_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = embed_dataset(STATISTICS, X, "z")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(X))


def test_masked_values_are_missing_in_the_sample_too(tmp_path):
    masked = np.ma.masked_array(X.copy(), np.zeros(X.shape, dtype=bool))
    masked.data[:, 3] = np.inf
    masked.mask[:, 3] = True
    group = embed_dataset(STATISTICS, masked, tmp_path / "z")
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(masked))
    masked.data[:, 3] = 1.0
    embed_dataset(STATISTICS, masked, tmp_path / "z")  # what lies under the mask is no difference
    masked.mask[:, 5] = True
    with pytest.raises(ValueError, match="sink was begun with another source"):
        embed_dataset(STATISTICS, masked, tmp_path / "z")


@pytest.mark.parametrize(
    ("shape", "size"),
    [((20, 16, 2), 20), ((5000, 2, 1), 4096), ((6, 2**20, 1), 4), ((2, 2**23, 1), 1)],
)
def test_a_chunk_holds_16_mib_and_at_most_4096_windows(tmp_path, shape, size):
    windows = np.broadcast_to(np.int8(0), shape)
    group = embed_dataset(FunctionOf(one_zero_each), windows, tmp_path / "z")
    assert group["embedding"].chunks[0] == size


def one_zero_each(windows):
    return np.zeros((len(windows), 1))


def test_progress(tmp_path, capsys):
    embed_dataset(STATISTICS, X, tmp_path / "z", chunk_size=4, verbose=1)
    assert "20.0/20.0" in capsys.readouterr().err


def test_few_calls_are_under_way():
    begun, finished, largest = [], [], []

    def calls():
        for number in range(40):
            begun.append(number)
            largest.append(len(begun) - len(finished))
            yield (number,)

    lock = threading.Lock()

    def work(factor, number):
        with lock:
            finished.append(number)
        return factor * number

    with joblib.parallel_config("threading", n_jobs=2):
        results = list(spread(work, [2], calls()))
    assert results == [2 * number for number in range(40)]
    assert max(largest) <= 2 * 2 + 1


@pytest.mark.parametrize("known", [True, False])
def test_the_closed_form_fits_on_dask_arrays_and_folders(in_pieces, folder, known):
    path, recordings = folder
    w = sliding_windows(recordings, 16, 8)
    groups = w.recording if known else None
    expected = closed_form().fit(w.X, groups=groups)
    blocks = da.from_array(w.X, chunks=(4, 8, 1))
    fitted = [fit_dataset(closed_form(), blocks, groups=groups)]
    if known:
        fitted.append(fit_dataset(closed_form(), path, length=16, stride=8))
    for cross in fitted:
        assert cross.n_pairs_ == expected.n_pairs_
        np.testing.assert_array_equal(cross.transform(w.X), expected.transform(w.X))


@pytest.mark.filterwarnings("ignore:Channel 0 of X is")
def test_many_dask_arrays_that_were_concatenated(tmp_path, monkeypatch):
    """Dask goes through all layers for each chunk; an array of its own for each file adds some."""
    windows = np.tile(X, (5, 1, 1)) + np.arange(100.0)[:, None, None]
    blocks = da.concatenate([da.from_array(block) for block in windows.reshape(100, 1, 16, 2)])
    graph_of_layers = pytest.importorskip("dask.highlevelgraph").HighLevelGraph
    cull, n_layers = graph_of_layers.cull, []

    def counted(graph, keys):
        n_layers.append(len(graph.layers))
        return cull(graph, keys)

    monkeypatch.setattr(graph_of_layers, "cull", counted)
    group = embed_dataset(STATISTICS, blocks, tmp_path / "z", chunk_size=20)
    np.testing.assert_array_equal(group["embedding"][:], STATISTICS.transform(windows))
    assert n_layers and max(n_layers) < 50
    n_layers.clear()
    groups = np.arange(100) // 10
    cross = closed_form(block_weights=(1, 1, 0, 0))
    again = clone(cross).fit(windows, groups=groups)
    fitted = fit_dataset(cross, blocks, groups=groups)
    assert n_layers and max(n_layers) < 50
    np.testing.assert_array_equal(fitted.transform(X), again.transform(X))


def test_the_closed_form_fits_on_dask_arrays_with_gaps(in_pieces):
    gaps, groups = X.copy(), np.arange(20) // 10
    gaps[3, :5], gaps[12, 9:, 1] = np.nan, np.nan
    expected = closed_form().fit(gaps, groups=groups)
    fitted = fit_dataset(closed_form(), da.from_array(gaps, chunks=(7, 8, 1)), groups=groups)
    np.testing.assert_array_equal(fitted.transform(gaps), expected.transform(gaps))


def test_the_closed_form_refuses_dask_arrays_as_it_refuses_arrays(in_pieces):
    unseen = X.copy()
    unseen[3, :8, 0], unseen[3, 8:, 1] = np.nan, np.nan  # no step has both channels
    infinite, too_large = X.copy(), unseen.astype(np.float64)  # an infinity is named first
    infinite[9], too_large[9, 3] = np.inf, 1e300
    for bad, message in (
        (unseen, "no finite time step in sample 3.*Drop these samples.$"),
        (infinite, "infinity.*sample 9"),
        (too_large, "infinity.*sample 9"),
        (X.astype(complex), "Complex data not supported: .* has dtype complex128"),
        (X.astype(str), "has dtype <U32: convert it"),
    ):
        for source in (bad, da.from_array(bad, chunks=(7, 8, 1))):
            with pytest.raises((TypeError, ValueError), match=message):
                fit_dataset(closed_form(), source)


def test_pieces_change_only_the_rounding(monkeypatch):
    """Sums over pieces equal those over all windows, with recordings across pieces."""
    windows, _ = make_windows(60, 16)
    recording = np.repeat([0, 1, 2, 3, 4], [3, 1, 40, 7, 9])
    fitted = []
    for size in (4096, 7, 1):
        monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", size)
        fitted.append(closed_form().fit(windows, groups=recording))
    for cross in fitted[1:]:
        assert cross.kappa_ == pytest.approx(fitted[0].kappa_, rel=1e-9)
        np.testing.assert_allclose(
            cross.predictability_["blocks"]["minirocket"],
            fitted[0].predictability_["blocks"]["minirocket"],
            rtol=1e-6,
        )
        # Rounding may turn the embedding, which leaves the products of its rows as they are.
        embedded = (one.transform(windows) for one in (cross, fitted[0]))
        ours, theirs = (rows @ rows.T for rows in embedded)
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())


def test_a_chunk_of_changed_windows_does_not_sort_all_windows(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    X = sliding_windows([np.random.default_rng(0).normal(size=(80, 2))], 8, 4, lazy=True).X
    scaled = WindowScaler(per="window").fit_transform(X)
    transformer = StatisticsTransformer().fit(scaled)
    monkeypatch.setattr(type(X), "_any_closer", None)
    group = embed_dataset(transformer, scaled, tmp_path / "sink", chunk_size=5)
    np.testing.assert_array_equal(group["embedding"][:], transformer.transform(scaled))
