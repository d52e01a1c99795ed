"""The README's code runs as it stands, and the names in its prose exist."""

import re

import pytest

import sklearn_pulse
from docs._generate.public import public_modules
from sklearn_pulse import CrossPredictionTransformer, FineTuneClassifier, PulseTransformer
from tests.helpers import SMALL_ENCODER
from tests.pages import ROOT, run_python

README = ROOT / "README.md"


# joblib warns when writing to its cache takes half a second, as it may on a busy machine.
@pytest.mark.filterwarnings("ignore:Persisting input arguments")
@pytest.mark.usefixtures("few_penalties")
def test_the_code_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    fit = PulseTransformer.fit

    def noted(self, X, y=None, *, groups=None, X_val=None):
        seen.append(groups)
        # Instead of five on the default widths: what is learned is not looked at.
        self.set_params(max_epochs=1, **SMALL_ENCODER, gru_hidden_dim=8, init_hidden_dim=8)
        return fit(self, X, y, groups=groups, X_val=X_val)

    closed_form = CrossPredictionTransformer.fit

    def with_few_kernels(self, X, *args, **kwargs):
        return closed_form(self.set_params(num_kernels=84), X, *args, **kwargs)  # of 10,000

    monkeypatch.setattr(PulseTransformer, "fit", noted)
    monkeypatch.setattr(CrossPredictionTransformer, "fit", with_few_kernels)
    names = run_python(README)
    assert seen and all(groups is not None for groups in seen)  # PULSE keeps people apart too
    assert names["w"].X.shape == (48, 64, 3)
    assert set(names["search"].best_params_) == {"pulse__n_crops", "probe__C"}
    assert (tmp_path / "cache").is_dir()
    files = {path.name for path in (tmp_path / "pulse-lorenz").iterdir()}
    assert files == {"model.safetensors", "config.json", "README.md"}
    assert isinstance(names["classifier"], FineTuneClassifier)
    assert names["classifier"].n_channels_in_ == 2


def test_names_in_the_readme_exist():
    pytest.importorskip("sktime")  # which sklearn_pulse.panel needs
    text = README.read_text(encoding="utf-8")
    for module in public_modules()[1:]:
        name = module.__name__.removeprefix("sklearn_pulse.")
        for attribute in re.findall(rf"`{name}\.(\w+)", text):
            assert hasattr(module, attribute), f"{name}.{attribute}"
    assert sklearn_pulse.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
