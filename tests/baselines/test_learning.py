"""Methods that learn where random features drown in noise (all figures: perf.hidden_dynamics)."""

import numpy as np
import pytest

from perf.hidden_dynamics import METHODS, accuracy, control_accuracy, make_task

# LFADS and TimeMAE learn too little within the budget; their losses and steps are tested literally.
LEARNING = ("simclr", "ts2vec", "rebar", "patchtst", "dsvae", "simmtm", "pulse")
MARGIN = 0.03  # of the accuracies of two seeds, about twice the standard error of either


@pytest.fixture(scope="module")
def untrained():
    return np.mean([control_accuracy("untrained encoder", seed) for seed in (0, 1)])


def test_the_task_has_groups_and_parts():
    task = make_task()
    assert len(task.train) == len(task.y_train) == len(task.groups) == 1400
    assert task.X_test.shape == (1500, 100, 8)
    assert set(LEARNING) < set(METHODS)


@pytest.mark.slow
def test_random_features_are_good_and_not_very_good(untrained):
    assert 0.6 < untrained < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_it_beats_its_untrained_encoder(name, untrained):
    assert accuracy(name, 0) > untrained + MARGIN
