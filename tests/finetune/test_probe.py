"""The probe on the fine-tuned embedding."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sklearn_pulse import FineTuneClassifier
from sklearn_pulse.evaluation import make_linear_probe
from tests.helpers import make_windows

from .tuning import TINY, scratch, tuned


def test_the_probe_repeats_to_the_bit_for_a_number_of_threads():
    X, y = make_windows(1500, 8, 1)[0], np.arange(1500) % 3
    wide = {"embedding_dim": 320, "encoder_hidden_dim": 4, "encoder_depth": 1, "max_epochs": 1}
    classifier = FineTuneClassifier(**(TINY | wide | {"batch_size": 500}), score_with="probe")
    coefs = []
    for number in (1, 2):
        with threadpool_limits(number, "blas"):
            coefs.append(clone(classifier).fit(X, y).probe_[-1].coef_)
    np.testing.assert_array_equal(*coefs)


@pytest.mark.parametrize("configured", ["fit", "predict"])
def test_the_probe_predicts_without_a_warning_under_any_output(windows, configured, tmp_path):
    X, y = windows
    contexts = {"fit": sklearn.config_context(), "predict": sklearn.config_context()}
    contexts[configured] = sklearn.config_context(transform_output="pandas")
    with contexts["fit"]:
        classifier = scratch(score_with="probe").fit(X, y)
        classifier.save_pretrained(tmp_path / "saved")
    with contexts["predict"], warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = classifier.predict_proba(X)
        loaded = FineTuneClassifier.from_pretrained(tmp_path / "saved").predict_proba(X)
    np.testing.assert_array_equal(loaded, expected)


@pytest.mark.parametrize("class_weight", [None, {0: 5.0, 1: 1.0}])
def test_the_probe_reads_the_fine_tuned_embedding(pulse, windows, class_weight, tmp_path):
    X, y = windows
    y = np.array(["a", "b"])[y]
    X, y = X[:15], y[:15]
    if class_weight is not None:
        class_weight = {"a": 5.0, "b": 1.0}
    classifier = tuned(pulse, score_with="probe", class_weight=class_weight).fit(X, y)
    probe = make_linear_probe()
    if class_weight is not None:
        probe.set_params(probe__class_weight=class_weight)
    probe.fit(classifier.transform(X).astype(float), y)
    np.testing.assert_allclose(
        classifier.predict_proba(X), probe.predict_proba(classifier.transform(X)), atol=1e-3
    )
    np.testing.assert_array_equal(classifier.predict(X), probe.predict(classifier.transform(X)))
    np.testing.assert_array_equal(classifier.probe_.classes_, classifier.classes_)
    again = clone(classifier.probe_).fit(classifier.transform(X).astype(float), y)
    np.testing.assert_allclose(
        again.predict_proba(classifier.transform(X)), classifier.predict_proba(X), atol=1e-3
    )
    head = tuned(pulse, class_weight=class_weight).fit(X, y)
    np.testing.assert_array_equal(head.transform(X), classifier.transform(X))
    assert not np.allclose(head.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(
        classifier.set_params(score_with="head").predict_proba(X), head.predict_proba(X)
    )
    assert not hasattr(classifier.fit(X, y), "probe_")
    with pytest.raises(ValueError, match="set after a fit with 'head'"):
        head.set_params(score_with="probe").predict(X)
    with pytest.raises(ValueError, match="score_with must be"):
        head.set_params(score_with="tail").predict(X)
    head.set_params(score_with="probe")
    with pytest.raises(ValueError, match="cannot be saved: .*set after a fit with 'head'"):
        head.save_pretrained(tmp_path / "model")
