"""Names of features, which call channels by their names where these are known."""

import numpy as np
import pandas as pd
import pytest

from sklearn_pulse.features import (
    AutocorrelationTransformer,
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from sklearn_pulse.windows import sliding_windows

X = np.random.default_rng(0).normal(size=(6, 256, 2)).cumsum(1)
OF_CHANNELS = [
    AutocorrelationTransformer,
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    RhythmTransformer,
    StatisticsTransformer,
]


def renamed(names, channels):
    """Return the names of features with other names of channels, literally."""
    return [
        name.replace("channel0", channels[0]).replace("channel1", channels[1]) for name in names
    ]


@pytest.mark.parametrize("cls", OF_CHANNELS)
def test_channels_have_their_names(cls, tmp_path):
    numbered = cls().fit(X).get_feature_names_out()
    named = cls(channel_names=["ecg", "ppg"]).fit(X)
    names = named.get_feature_names_out()
    assert names.tolist() == renamed(numbered, ["ecg", "ppg"]) and len(set(names)) == len(names)
    assert named.set_output(transform="pandas").transform(X).columns.tolist() == names.tolist()
    named.save_pretrained(tmp_path)
    loaded = cls.from_pretrained(tmp_path)
    np.testing.assert_array_equal(loaded.get_feature_names_out(), names)


def test_lazy_windows_of_frames_name_them_too():
    frames = [pd.DataFrame(x, columns=["left", "right"]) for x in X]
    lazy = sliding_windows(frames, 128, 128, lazy=True).X
    names = StatisticsTransformer().fit(lazy).get_feature_names_out()
    assert names[0] == "left_mean" and "right_mean" in names


@pytest.mark.parametrize(
    ("cls", "channels"),
    [
        (AutocorrelationTransformer, ["a", "a_speed"]),
        (CovarianceTransformer, ["a", "a_delay0_a"]),
    ],
)
def test_names_that_would_not_be_unique_are_numbers(cls, channels):
    names = cls(channel_names=channels).fit(X).get_feature_names_out()
    assert len(set(names)) == len(names)
    assert names[0].startswith("channel0_")
