"""The MIT-BIH AF reader, on WFDB files made here and on real records if they are available."""

from __future__ import annotations

import math
import shutil
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter

from sklearn_pulse.datasets import _mitbih_af as reader
from sklearn_pulse.datasets import _remote, fetch_mitbih_af
from sklearn_pulse.windows import RecordingWindows, segment_windows
from tests.datasets.wfdb_records import write_signals

# Of a few recordings alone.
pytestmark = pytest.mark.filterwarnings("ignore:.*the parts are not the published:UserWarning")

wfdb = pytest.importorskip("wfdb")

LENGTH = 2500
CODES = {"AFIB": 0, "AFL": 1, "J": 2, "N": 3}
# Samples and rhythm marks (sample, rhythm) of seven records at 250 Hz.
RECORDS = {
    "04015": (16000, [(30, "N"), (4000, "AFIB"), (9030, "N")]),
    "04043": (13100, [(100, "AFIB"), (5100, "AFL"), (7600, "AFIB")]),
    "04048": (14000, [(0, "N")]),
    "04126": (15000, [(7, "N"), (1257, "AFIB"), (3757, "J"), (6257, "N"), (8000, "B")]),
    "04746": (12601, [(50, "AFIB"), (3000, "N"), (3001, "AFIB")]),
    "04908": (13000, [(11, "J"), (2600, "N"), (5000, "AFIB"), (11000, "N")]),
    "05091": (20000, [(1, "N"), (2000, "AFIB"), (15000, "N")]),
}


def write_record(folder, name, n_samples, marks, rate=250, seed=None, missing=()):
    """Write a record in format 212 with beats and rhythms; return its signals as stored."""
    rng = np.random.default_rng(sum(map(ord, name)) if seed is None else seed)
    time = np.arange(n_samples)[:, np.newaxis] / rate
    drift = 2 * np.sin(2 * np.pi * (0.1 * time + rng.random(2)))
    signals = drift + np.sin(2 * np.pi * (3 * time + rng.random(2))) + 0.3
    signals += rng.normal(scale=0.3, size=signals.shape)
    signals = np.clip(np.round(signals * 200), -2000, 2000) / 200
    signals[list(missing)] = np.nan
    write_signals(folder, name, signals, rate)
    if marks is not None:
        notes = {sample: (f"({rhythm}", "+") for sample, rhythm in marks}
        for sample in range(5, n_samples, 900):
            notes.setdefault(sample, ("", "N"))
        samples = sorted(notes)
        wfdb.wrann(
            name,
            "atr",
            np.array(samples),
            symbol=[notes[sample][1] for sample in samples],
            aux_note=[notes[sample][0] for sample in samples],
            write_dir=str(folder),
        )
    return signals


def literal_rhythms(n_samples, marks):
    """Return the code of each sample from the first mark on."""
    codes, current = [], None
    at = dict(marks)
    for sample in range(n_samples):
        if sample in at:
            current = CODES.get(at[sample], 4)
        if current is not None:
            codes.append(current)
    return codes


def literal_label(codes, rule):
    """Return the class of a window of codes, or None."""
    counts = Counter(codes)
    if rule == "pure" and len(counts) > 1:
        return None
    most = max(counts.values())
    code = min(code for code, count in counts.items() if count == most)
    return {0: 0, 3: 1}.get(code)


def literal_biquad(section, x, steady):
    """Apply one second-order section, as if all earlier input had been `steady`."""
    b0, b1, b2, _, a1, a2 = section.tolist()
    gain = (b0 + b1 + b2) / (1 + a1 + a2)
    x1 = x2 = steady
    y1 = y2 = steady * gain
    out = []
    for x0 in x:
        y0 = b0 * x0 + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        out.append(y0)
        x1, x2, y1, y2 = x0, x1, y0, y1
    return out, steady * gain


def literal_both_ways(run, x, padding):
    """Filter forwards and backwards over a signal extended by reflection in its end points."""
    x = list(x)
    left = [2 * x[0] - x[i] for i in range(padding, 0, -1)]
    right = [2 * x[-1] - x[-1 - i] for i in range(1, padding + 1)]
    y = run(run(left + x + right)[::-1])[::-1]
    return y[padding:-padding]


def literal_clean(x):
    """Apply high-pass and moving average to one lead, sample by sample."""

    def high_pass(x):
        steady = x[0]
        for section in butter(5, 0.5 / 125, btype="high", output="sos"):
            x, steady = literal_biquad(section, x, steady)
        return x

    def moving_average(x):
        x = [x[0]] * 4 + x
        return [sum(x[i : i + 5]) / 5 for i in range(len(x) - 4)]

    return literal_both_ways(moving_average, literal_both_ways(high_pass, x, 18), 15)


def literal_recording(signals, marks, length):
    leads = []
    for lead in signals[marks[0][0] :][:length].T:
        x = literal_clean(lead.tolist())
        mean = sum(x) / len(x)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in x) / len(x))
        leads.append([(value - mean) / deviation for value in x])
    return np.array(leads).T


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data home with seven small records; return it, the signals and the Bunch."""
    home = tmp_path_factory.mktemp("data")
    signals = {
        name: write_record(home / "mitbih_af", name, n_samples, marks)
        for name, (n_samples, marks) in RECORDS.items()
    }
    return home, signals, fetch_mitbih_af(home)


def assert_windows(data, names, rule, downsample):
    """Compare windows with the literal rules; the values are the recordings'."""
    length = min(n - marks[0][0] for n, marks in RECORDS.values())
    expected = []
    for place, name in enumerate(names):
        part = "train" if place < int(0.7 * 7) else "val" if place < int(0.85 * 7) else "test"
        codes = literal_rhythms(*RECORDS[name])
        for start in range(0, length - LENGTH + 1, LENGTH):
            label = literal_label(codes[start : start + LENGTH], rule)
            if label is not None:
                expected.append((place, start, label, part))
    got = zip(data.recording, data.start, data.y, data.split, strict=True)
    assert expected == list(got)
    X = [data.recordings[r][s : s + LENGTH : downsample] for r, s, _, _ in expected]
    np.testing.assert_array_equal(data.X, X)


def shuffled(names):
    order = list(names)
    np.random.RandomState(1234).shuffle(order)
    return order


def test_windows_follow_the_literal_rules(folder):
    data = folder[-1]
    names = shuffled(sorted(RECORDS))
    assert data.recording_name.tolist() == names
    assert data.recording_split.tolist() == ["train"] * 4 + ["val"] + ["test"] * 2
    assert {len(recording) for recording in data.recordings} == {12551}
    assert_windows(data, names, "majority", 5)


@pytest.mark.parametrize(("rule", "downsample"), [("pure", 5), ("majority", 1), ("pure", 3)])
def test_windows_follow_the_literal_rules_with_options(folder, rule, downsample):
    data = fetch_mitbih_af(folder[0], label=rule, downsample=downsample)
    assert_windows(data, shuffled(sorted(RECORDS)), rule, downsample)
    assert data.downsample == downsample
    again = RecordingWindows(
        data.recordings, data.recording, data.start, data.X.shape[1], data.downsample
    )
    np.testing.assert_array_equal(again, data.X)


def test_signals_follow_the_literal_rules(folder):
    _, signals, data = folder
    for place in (0, 6):
        name = data.recording_name[place]
        expected = literal_recording(signals[name], RECORDS[name][1], 12551)
        assert data.recordings[place].dtype == np.float32
        np.testing.assert_allclose(data.recordings[place], expected, rtol=0, atol=2e-6)


def test_ties_go_to_the_lowest_code():
    """AFIB and J have half of record 04126's first window each, N and AFIB of another's."""
    marks = np.array([0, 1250])
    for codes, expected in (([3, 0], 0), ([0, 3], 0), ([2, 3], None), ([4, 3], 1), ([1, 0], 0)):
        rhythms = reader.Rhythms("a", 250.0, 0, LENGTH, marks, np.array(codes))
        _, _, y = reader.label_windows([np.zeros((LENGTH, 2))], [rhythms], "majority")
        assert y.tolist() == ([] if expected is None else [expected])


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_rhythms_last_until_the_next(data):
    length = data.draw(st.integers(1, 50))
    onset = [0, *sorted(data.draw(st.sets(st.integers(1, 60), max_size=8)))]
    code = data.draw(st.lists(st.integers(0, 4), min_size=len(onset), max_size=len(onset)))
    rhythms = reader.Rhythms("a", 250.0, 0, 100, np.array(onset), np.array(code))
    steps = reader.rhythm_steps(rhythms, length)
    expected = [code[sum(mark <= step for mark in onset) - 1] for step in range(length)]
    assert steps.tolist() == expected
    classes = np.full(length, -2)
    for _, start, end, label in reader.rhythm_segments([rhythms], length).tolist():
        assert start < end and (classes[start:end] == -2).all()
        classes[start:end] = label
    assert classes.tolist() == [{0: 0, 3: 1}.get(c, -1) for c in expected]


def test_segments_hold_the_pure_windows(folder):
    data = folder[-1]
    cut = segment_windows(data.recordings, data.segments, LENGTH)
    for r, s, label in zip(cut.recording, cut.start, cut.y, strict=True):
        codes = literal_rhythms(*RECORDS[data.recording_name[r]])[s : s + LENGTH]
        assert {{0: 0, 3: 1}.get(code, -1) for code in codes} == {label}


def test_filters_remove_drift_and_powerline():
    time = np.arange(5000)[:, np.newaxis] / 250
    inner = slice(1000, -1000)
    for frequency, gain in ((0.0, 0), (0.05, 0), (3.0, 0.99), (50.0, 0), (100.0, 0)):
        wave = np.cos(2 * np.pi * frequency * time)
        cleaned = reader.clean_ecg(wave)
        assert np.abs(cleaned[inner]).max() == pytest.approx(gain, abs=0.02), frequency
        # The filter has zero phase: the pass band is not shifted in time.
        np.testing.assert_allclose(cleaned[inner], gain * wave[inner], atol=0.03)


def test_missing_samples_are_filled(tmp_path):
    assert reader.fill_missing(
        np.array([[np.nan, 1], [np.nan, np.nan], [3, np.nan], [np.nan, 4]])
    ).tolist() == [[3, 1], [3, 1], [3, 1], [3, 4]]
    signals = write_record(tmp_path, "a", 6000, [(0, "N")], missing=(0, 70, 71, 5999))
    for i in (0, 70, 71, 5999):
        signals[i] = signals[i - 1] if i else signals[1]
    data = fetch_mitbih_af(tmp_path)
    expected = literal_recording(signals, [(0, "N")], 6000)
    np.testing.assert_allclose(data.recordings[0], expected, rtol=0, atol=2e-6)


def test_lead_without_samples(tmp_path):
    write_record(tmp_path, "a", 3000, [(0, "N")], missing=range(3000))
    with pytest.raises(ValueError, match="record a has no sample in lead 0"):
        fetch_mitbih_af(tmp_path)


@pytest.mark.parametrize("n_flat", [6000, 5000])
@pytest.mark.parametrize("rate", [250, 360])
def test_flat_lead_is_zero(tmp_path, rate, n_flat):
    """Its rounding errors in the filters are no ECG; all records are cut to the shortest."""
    write_record(tmp_path, "b", 5000, [(0, "N")], rate=rate)
    signals = write_record(tmp_path, "a", 6000, [(0, "N")], rate=rate)
    signals[:n_flat, 1] = -0.325
    write_signals(tmp_path, "a", signals, rate)
    data = fetch_mitbih_af(tmp_path)
    (recording,) = (x for x in data.recordings if not x[:, 1].any())
    assert not recording[:, 1].any()
    assert recording[:, 0].std() == pytest.approx(1.0, abs=1e-5)


def test_other_rates_are_resampled():
    time = np.arange(3600)[:, np.newaxis] / 360
    wave = np.sin(2 * np.pi * 2 * time + 1) + 5
    up, down = reader.resampling_ratio(360)
    resampled = reader.resample(wave, up, down)
    assert resampled.shape == (2500, 1)
    at = np.arange(2500)[:, np.newaxis] / 250
    expected = np.sin(2 * np.pi * 2 * at + 1) + 5
    np.testing.assert_allclose(resampled[100:-100], expected[100:-100], atol=2e-3)
    # The ends do not fall to zero.
    np.testing.assert_allclose(resampled, expected, atol=0.3)
    assert reader.resample(wave, *reader.resampling_ratio(250.0)) is wave


def test_records_at_500_hz_follow_the_same_rules(tmp_path):
    """Marks and lengths are counted in time from the first mark."""
    write_record(tmp_path, "a", 20020, [(20, "N"), (5021, "AFIB"), (10020, "N")], rate=500)
    data = fetch_mitbih_af(tmp_path, downsample=1)
    assert data.window_rate == 250.0
    assert [len(recording) for recording in data.recordings] == [10000]
    assert data.segments.tolist() == [[0, 0, 2500, 1], [0, 2500, 5000, 0], [0, 5000, 10000, 1]]
    assert data.y.tolist() == [1, 0, 1, 1]
    assert data.sampling_rate == 250.0


def test_another_order_of_records_is_another_shuffle(folder):
    home, _, data = folder
    names = sorted(RECORDS, reverse=True)
    other = fetch_mitbih_af(home, record_order=names)
    assert other.recording_name.tolist() == shuffled(names) != data.recording_name.tolist()
    assert_windows(other, shuffled(names), "majority", 5)
    again = fetch_mitbih_af(home, record_order=iter(names))
    assert again.recording_name.tolist() == other.recording_name.tolist()


def test_annotations_that_are_cut_off(tmp_path):
    """What is missing would have the rhythm before it."""
    write_record(tmp_path, "a", 20_000, [(0, "N"), (9000, "AFIB")])
    assert fetch_mitbih_af(tmp_path).y.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    path = tmp_path / "a.atr"
    path.write_bytes(path.read_bytes()[:26])
    with pytest.raises(ValueError, match=r"a\.atr is cut off"):
        fetch_mitbih_af(tmp_path)


@pytest.mark.parametrize("gain", ["1e-306", "1e-200", "1e300"])
def test_gain_that_makes_signals_infinite(tmp_path, gain):
    write_record(tmp_path, "a", 3000, [(0, "N")])
    header = tmp_path / "a.hea"
    header.write_text(header.read_text().replace("200(0)/mV", f"{gain}(0)/mV"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"the gains in .*a\.hea make the signals infinite"):
            fetch_mitbih_af(tmp_path)


@pytest.mark.parametrize(
    ("record_order", "error"),
    [
        (["04015"], ValueError),
        ("04015", TypeError),
        ([*RECORDS, "04015"], ValueError),
        (4015, TypeError),
        (iter(["04015"]), ValueError),
    ],
)
def test_record_order_of_other_names(folder, record_order, error):
    with pytest.raises(error, match="record_order must hold each of the 7 records once"):
        fetch_mitbih_af(folder[0], record_order=record_order)


@pytest.mark.parametrize(
    "parameters",
    [{"downsample": 0}, {"downsample": 2501}, {"label": "Pure"}, {"group": "window"}],
    ids=str,
)
def test_bad_parameters(tmp_path, parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
        fetch_mitbih_af(tmp_path, **parameters)


def test_bunch_is_complete(folder):
    data = folder[-1]
    assert data.X.dtype == np.float32 and data.X.shape[1:] == (500, 2)
    assert data.target_names == ["AFIB", "N"] and len(data.channel_names) == 2
    assert data.groups.tolist() == data.recording_name[data.recording].tolist()
    assert data.sampling_rate == 250.0 and data.window_rate == 50.0
    for word in ("Moody", "Open Data Commons", "record_order", "split by person"):
        assert word in data.DESCR


def test_where_the_folder_is_looked_for(tmp_path, folder):
    for place in (folder[0], folder[0] / "mitbih_af"):
        np.testing.assert_array_equal(fetch_mitbih_af(place).y, folder[-1].y)
    by_wget = tmp_path / "physionet.org" / "files" / "afdb" / "1.0.0"
    shutil.copytree(folder[0] / "mitbih_af", by_wget)
    np.testing.assert_array_equal(fetch_mitbih_af(tmp_path).y, folder[-1].y)
    by_wget.rename(tmp_path / "afdb")
    np.testing.assert_array_equal(fetch_mitbih_af(tmp_path).y, folder[-1].y)
    (tmp_path / "afdb").rename(tmp_path / "mitdb")
    with pytest.warns(UserWarning, match="Arrhythmia Database in .*mitdb is read instead"):
        assert fetch_mitbih_af(tmp_path).stands_in
    assert not fetch_mitbih_af(tmp_path / "mitdb").stands_in  # named: no warning


def test_a_record_of_the_user_hides_no_database(tmp_path, folder):
    shutil.copytree(folder[0] / "mitbih_af", tmp_path / "afdb")
    write_record(tmp_path, "mine", 3000, [(0, "N")])
    np.testing.assert_array_equal(fetch_mitbih_af(tmp_path).y, folder[-1].y)
    assert fetch_mitbih_af(tmp_path / "afdb").X.shape == folder[-1].X.shape


def test_absent_records_are_warned_of(tmp_path, folder):
    with pytest.warns(UserWarning, match="lacks the records 04936, 05121, .* divided anew"):
        fetch_mitbih_af(folder[0])
    write_record(tmp_path, "mine", 3000, [(0, "N")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fetch_mitbih_af(tmp_path)  # none of the database


def test_a_foreign_record_among_those_of_the_database_is_warned_of(tmp_path, folder):
    copy = tmp_path / "mitbih_af"
    shutil.copytree(folder[0] / "mitbih_af", copy)
    write_record(copy, "100", 3000, [(0, "N")])
    with pytest.warns(UserWarning, match="also holds the records 100, which are not of the AF"):
        fetch_mitbih_af(tmp_path)


def test_no_stand_in_for_an_archive_that_is_damaged(tmp_path):
    pytest.importorskip("filelock")
    write_record(tmp_path / "mitdb", "a", 3000, [(0, "N")])
    (tmp_path / _remote.REMOTES["mitbih_af"].filename).write_bytes(b"half a download")
    with pytest.raises(OSError, match="is no intact zip archive"):
        fetch_mitbih_af(tmp_path)


def test_records_without_signals_are_passed_over(tmp_path, folder):
    shutil.copytree(folder[0] / "mitbih_af", tmp_path / "afdb")
    for suffix in (".hea", ".atr"):
        shutil.copy(tmp_path / "afdb" / f"04015{suffix}", tmp_path / "afdb" / f"00735{suffix}")
    (tmp_path / "afdb" / "._04015.dat").write_bytes(b"\x00\x05")
    np.testing.assert_array_equal(fetch_mitbih_af(tmp_path).X, folder[-1].X)


def test_what_a_mac_adds_to_an_archive_is_no_data_set(tmp_path, folder):
    shutil.copytree(folder[0] / "mitbih_af", tmp_path / "mitbih_af" / "files")
    (tmp_path / "mitbih_af" / "__MACOSX").mkdir()
    for suffix in (".hea", ".atr", ".dat"):
        (tmp_path / "mitbih_af" / "__MACOSX" / f"._04015{suffix}").write_bytes(b"\x00\x05")
    np.testing.assert_array_equal(fetch_mitbih_af(tmp_path).X, folder[-1].X)


@pytest.mark.parametrize("suffix", [".hea", ".atr", ".dat"])
def test_missing_file(tmp_path, folder, suffix):
    shutil.copytree(folder[0] / "mitbih_af", tmp_path / "afdb")
    (tmp_path / "afdb" / f"04043{suffix}").unlink()
    with pytest.raises(FileNotFoundError, match=rf"04043\{suffix} is missing"):
        fetch_mitbih_af(tmp_path)


def test_record_without_rhythm(tmp_path):
    write_record(tmp_path, "a", 3000, [])
    with pytest.raises(ValueError, match=r"a\.atr has no rhythm annotation"):
        fetch_mitbih_af(tmp_path)


def test_record_shorter_than_a_window(tmp_path):
    write_record(tmp_path, "long", 3000, [(0, "N")])
    write_record(tmp_path, "short", 2600, [(101, "N")])
    with pytest.raises(ValueError, match="record short has 2499 steps"):
        fetch_mitbih_af(tmp_path)


def test_without_wfdb(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "wfdb", None)
    with pytest.raises(ImportError, match=r"sklearn-pulse\[ecg\]"):
        fetch_mitbih_af(folder[0])


# The real records of the MIT-BIH Arrhythmia Database, which is read instead


@pytest.fixture(scope="module")
def stand_in(data_home):
    """Return the folder with records of the MIT-BIH Arrhythmia Database."""
    if not (data_home / "mitdb").is_dir():
        pytest.skip(f"no folder mitdb in {data_home}")
    return data_home / "mitdb"


@pytest.fixture(scope="module")
def pure(stand_in):
    """Load windows of one rhythm."""
    return fetch_mitbih_af(stand_in, label="pure")


def afib_counts(data):
    counts = Counter(data.recording_name[data.recording[data.y == 0]].tolist())
    return dict(sorted(counts.items()))


def test_pure_afib_windows_of_each_record(pure):
    # Windows are counted from the first rhythm mark on. Record 203 has one more window (127) in a
    # count that accepts its window 70, of whose 3,600 samples the last 11 (31 ms) are ventricular
    # tachycardia.
    assert afib_counts(pure) == {
        "201": 58,
        "202": 54,
        "203": 126,
        "210": 170,
        "217": 9,
        "219": 134,
        "221": 163,
        "222": 2,
    }


def test_the_window_of_record_203_that_is_nearly_pure(stand_in):
    """All samples of window 70 but 11 are atrial fibrillation in the file."""
    rhythms = reader.read_rhythms(wfdb, stand_in, "203")
    codes = reader.rhythm_steps(rhythms, rhythms.n_timesteps)[70 * LENGTH : 71 * LENGTH]
    impure = np.flatnonzero(codes != 0)
    assert len(impure) == round(11 * 250 / 360) and impure[0] == LENGTH - len(impure)


def test_the_stand_in_goes_through_the_pipeline(pure, stand_in):
    assert len(pure.recordings) == 16
    assert {recording.shape for recording in pure.recordings} == {(451259, 2)}
    for recording in pure.recordings:
        np.testing.assert_allclose(recording.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(recording.std(axis=0), 1, atol=1e-5)
    rhythms = [reader.read_rhythms(wfdb, stand_in, str(name)) for name in pure.recording_name]
    recording, _, y = reader.label_windows(pure.recordings, rhythms, "majority")
    names = pure.recording_name[recording[y == 0]].tolist()
    assert len(names) == 799 and names.count("203") == 147
    assert all(names.count(name) >= n for name, n in afib_counts(pure).items())


def test_two_records_of_one_man(pure):
    subject = dict(zip(pure.recording_name.tolist(), pure.recording_subject.tolist(), strict=True))
    assert subject.pop("202") == subject["201"] == "201"
    assert all(name == one for name, one in subject.items())
    assert len(set(pure.recording_subject.tolist())) == 15
