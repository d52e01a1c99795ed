"""Parameters and their bounds."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from sklearn_pulse import FineTuneClassifier, RandomEncoderTransformer
from tests.helpers import BatchSpy, callback_of

from .tuning import scratch


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head_hidden_dim", 0),
        ("freeze_epochs", -1),
        ("select", "first"),
        ("score_with", "tail"),
        ("embedding_dim", 0),
        ("pooling", "min"),
        ("max_epochs", 0),
        ("lr", 0.0),
        ("weight_decay", -1.0),
        ("lr_decay", 1.1),
        ("batch_size", 0),
        ("class_weight", "unbalanced"),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("bag_pooling", "sum"),
        ("precision", "float16"),
        ("compile", "yes"),
        ("device", "abacus"),
        ("num_threads", 0),
        ("input_layout", "tnc"),
        ("callbacks", 3),
        ("verbose", -1),
    ],
)
def test_refused_parameters(windows, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        FineTuneClassifier(**{name: value}).fit(*windows)


def test_a_decay_of_one_keeps_the_learning_rate(windows):
    fitted = scratch(lr_decay=1.0, callbacks=[BatchSpy()]).fit(*windows)
    assert callback_of(fitted, BatchSpy).setting("lr") == [1e-2] * 6


@pytest.mark.parametrize("number", [np.float32(0.75), Fraction(3, 4)])
def test_a_decay_of_another_kind_of_number_gives_the_same_rates(windows, tmp_path, number):
    """Rates stay numbers of Python, which a checkpoint can hold and float32 does not round."""

    def rates(**params):
        fitted = scratch(callbacks=[BatchSpy()], **params).fit(*windows)
        return callback_of(fitted, BatchSpy).setting("lr")

    assert rates(lr_decay=number, checkpoint_dir=tmp_path) == rates(lr_decay=0.75)


def test_shared_parameters_have_one_default():
    ours, theirs = (
        inspect.signature(cls).parameters for cls in (FineTuneClassifier, RandomEncoderTransformer)
    )
    assert set(theirs) <= set(ours)
    own = {"input_layout"}  # that of the encoder, which may be pretrained
    assert all(ours[name].default == theirs[name].default for name in theirs.keys() - own)


def test_bfloat16_and_verbose(windows, capsys):
    classifier = scratch(precision="bfloat16", verbose=1, patience=1, validation_fraction=0.3)
    classifier.set_params(lr=1e-12, max_epochs=4).fit(*windows)
    assert np.isfinite(classifier.predict_proba(windows[0])).all()
    assert "Stopping since valid_loss" in capsys.readouterr().out
