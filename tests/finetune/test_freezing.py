"""What a frozen encoder keeps."""

import torch
from skorch.callbacks import Freezer

from sklearn_pulse import FineTuneClassifier, PulseTransformer
from sklearn_pulse.objectives import Classification, Source
from tests.helpers import SMALL_PULSE, BatchSpy, callback_of

from .noisy import Noisy
from .tuning import TINY, same, state, tuned


def test_a_frozen_encoder_stays_while_the_rest_trains(pulse, windows):
    classifier = tuned(pulse, freeze_epochs=2, callbacks=[BatchSpy()]).fit(*windows)
    before, after = (
        callback_of(classifier, BatchSpy).before_.state_dict(),
        classifier.net_.module_.state_dict(),
    )
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == name.startswith("source"), name
    thawed = tuned(pulse, freeze_epochs=1).fit(*windows)
    assert not same(state(pulse.encoder_), thawed.encoder_.state_dict())
    whole = tuned(pulse).fit(*windows)
    assert whole.history_[1]["train_loss"] != thawed.history_[1]["train_loss"]


def test_an_encoder_that_was_frozen_is_fine_tuned_again(pulse, windows, tmp_path):
    first = tuned(pulse, freeze_epochs=2).fit(*windows)
    again = tuned(first).fit(*windows).encoder_.state_dict()
    assert not same(state(first.encoder_), again)
    first.save_pretrained(tmp_path / "first")
    loaded = FineTuneClassifier(tmp_path / "first", **TINY).fit(*windows)
    assert same(again, loaded.encoder_.state_dict())


def test_what_a_callback_froze_in_pretraining_is_fine_tuned(windows, tmp_path):
    X, y = windows
    frozen = PulseTransformer(**SMALL_PULSE, callbacks=[Freezer("encoder.*")]).fit(X)
    assert all(weight.requires_grad for weight in frozen.encoder_.parameters())
    again = tuned(frozen).fit(X, y).encoder_.state_dict()
    assert not same(state(frozen.encoder_), again)
    frozen.set_params(callbacks=None).save_pretrained(tmp_path / "frozen")
    loaded = FineTuneClassifier(tmp_path / "frozen", **TINY).fit(X, y)
    assert same(again, loaded.encoder_.state_dict())


def test_a_callback_freezes_the_encoder(pulse, windows):
    classifier = tuned(pulse, callbacks=[Freezer("source.*"), BatchSpy()]).fit(*windows)
    before, after = (
        callback_of(classifier, BatchSpy).before_.state_dict(),
        classifier.net_.module_.state_dict(),
    )
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == name.startswith("source"), name


def test_frozen_means_no_gradient_and_no_drift_of_statistics():
    source = Source(Noisy(2), n_channels=2, embedding_dim=6, min_batch_size=2)
    objective = Classification(2, n_classes=2, source=source, freeze_epochs=1)
    x, y = torch.randn(8, 5, 2), torch.arange(8) % 2
    for epoch, changes in ((0, False), (1, True)):
        objective.epoch = epoch
        objective.train()
        before = state(objective.source)
        objective(x, y, torch.ones(8)).backward()
        assert (objective.source.encoder.weight.grad is not None) == changes
        assert objective.source.training == changes
        assert same(before, state(objective.source)) != changes
        assert objective.head[0].weight.grad is not None
    assert objective.source.fixed.weight.grad is None
    objective.eval()
    assert not objective.source.training
