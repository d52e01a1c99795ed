"""Shared parameters in the docstrings of estimators, also of those outside the package."""

import inspect
import re
import subprocess
import sys

import pytest

import sklearn_pulse
from sklearn_pulse import PulseTransformer, baselines
from sklearn_pulse.base import (
    BaseSSLTransformer,
    BaseWindowClassifier,
    TrainedEmbedder,
    complete_docstring,
)
from sklearn_pulse.baselines import PatchTSTTransformer
from sklearn_pulse.features import StatisticsTransformer
from tests.toy_method import DenoisedMeanTransformer


def described(value, heading="Parameters"):
    """Entries of a section by name, each with the type and description in one line."""
    section = re.search(rf"{heading}\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(value), re.DOTALL)
    entries = re.split(r"\n(?=\S)", section[1].strip())
    parts = (entry.split(" : ", 1) for entry in entries)
    return {name: " ".join(text.split()) for name, text in parts}


def names(value):
    return [name for name in inspect.signature(value).parameters if name != "self"]


def test_a_method_outside_the_package_is_documented_whole():
    entries = described(DenoisedMeanTransformer)
    assert list(entries) == names(DenoisedMeanTransformer)
    assert entries["noise"] == "float, default=1.0 Standard deviation of the noise."
    assert entries["batch_size"] == "int, default=128 Number of windows per training step."
    assert entries["device"].startswith('str or torch.device, default="auto" ')
    attributes = described(DenoisedMeanTransformer, "Attributes")
    assert {"encoder_", "net_", "history_", "n_channels_in_"} <= attributes.keys()


def test_a_shared_parameter_reads_the_same_everywhere():
    own, other = described(DenoisedMeanTransformer), described(PulseTransformer)
    shared = own.keys() & other.keys()
    assert shared == own.keys() - {"noise"}
    assert all(own[name] == other[name] for name in shared)


TRAINED = {
    cls.__name__: cls
    for room in (sklearn_pulse, baselines)
    for cls in [getattr(room, name) for name in room.__all__]
    if isinstance(cls, type) and issubclass(cls, TrainedEmbedder)
}


@pytest.mark.parametrize("name", TRAINED)
def test_whoever_trains_can_be_resumed_and_followed(name):
    entries = described(TRAINED[name])
    assert {"callbacks", "random_state", "verbose"} < entries.keys()
    assert entries["checkpoint_dir"] == described(PulseTransformer)["checkpoint_dir"]


def test_the_class_has_the_last_word():
    class Wide(PatchTSTTransformer):
        """Wide PatchTST.

        Parameters
        ----------
        verbose : int, default=1
            Whether to talk.
        """

        def __init__(self, *, embedding_dim=640, patch_length=3, lr=0.5, verbose=1): ...

    entries, base = described(Wide), described(PatchTSTTransformer)
    assert list(entries) == ["embedding_dim", "patch_length", "lr", "verbose"]
    assert entries["verbose"] == "int, default=1 Whether to talk."
    # A base class goes before the table, with the default of the new signature.
    for name, default in {"embedding_dim": "640", "patch_length": "3"}.items():
        assert entries[name] == re.sub(r"default=\d+", f"default={default}", base[name])
    assert entries["lr"] == described(PulseTransformer)["lr"].replace("0.001", "0.5")


def test_the_other_sections_stay():
    class Noted(PulseTransformer):
        """Embed with a note.

        The summary goes on.

        Notes
        -----
        The note.

        Examples
        --------
        >>> 1 + 1
        2
        """

    assert list(described(Noted)) == names(PulseTransformer)
    titles = re.findall(r"(\w+)\n-{3,}", Noted.__doc__)
    assert titles == ["Parameters", "Attributes", "Notes", "Examples"]
    assert Noted.__doc__.startswith("Embed with a note.\n\nThe summary goes on.\n\nParameters")
    assert Noted.__doc__.endswith("Notes\n-----\nThe note.\n\nExamples\n--------\n>>> 1 + 1\n2\n")


def test_a_parameter_that_is_described_nowhere():
    with pytest.raises(TypeError, match=r"Silent describes its parameters \['loudness'\] nowhere"):

        class Silent(BaseSSLTransformer):
            """A class that says nothing of its parameter."""

            def __init__(self, *, lr=1e-3, loudness=1): ...


@pytest.mark.parametrize("entry", ["volume : int", "lr, loudness : int"])
def test_an_entry_that_is_no_parameter(entry):
    class Loud:
        def __init__(self, *, lr=1e-3, loudness=1): ...

    Loud.__doc__ = f"Loud.\n\nParameters\n----------\nloudness : int\n    Loud.\n{entry}\n    Text."
    with pytest.raises(TypeError, match=re.escape(f"describes ['{entry.split(' :')[0]}']")):
        complete_docstring(Loud)


def test_a_class_without_a_docstring_keeps_none():
    class Bare(PulseTransformer):
        def __init__(self, *, anything=0): ...

    assert Bare.__doc__ is None


def test_methods_have_their_parameters_described():
    assert list(described(BaseWindowClassifier.fit)) == names(BaseWindowClassifier.fit)

    class Own(BaseSSLTransformer):
        """A class with its own methods."""

        def fit(self, X, y=None, *, X_val=None, speed=1):
            """Train fast.

            Parameters
            ----------
            speed : int, default=1
                How fast.
            """

        def transform(self, X):
            """Embed."""

        def _helper(self, X):
            """Help."""

    entries = described(Own.fit)
    assert list(entries) == ["X", "y", "X_val", "speed"]
    assert entries["speed"] == "int, default=1 How fast."
    assert entries["X_val"] == described(BaseSSLTransformer.fit)["X_val"]
    assert list(described(Own.transform)) == ["X"]
    assert Own._helper.__doc__ == "Help."


def test_python_without_docstrings(tmp_path):
    """The module is loaded by its path, since skorch cannot be imported under -OO."""
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('docstrings', sys.argv[1])\n"
        "docstrings = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(docstrings)\n"
        "@docstrings.complete_docstring\n"
        "class Method:\n"
        "    'A method.'\n"
        "    def __init__(self, *, lr=1.0, loudness=1): ...\n"
        "    def fit(self, X, *, groups=None):\n"
        "        'Fit.'\n"
        "print(Method.__doc__, Method.fit.__doc__, 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-B", "-OO", script, inspect.getfile(complete_docstring)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.split() == ["None", "None", "False"], run.stderr


def test_own_feature_transformers_may_leave_parameters_undescribed():
    class Own(StatisticsTransformer):
        """Statistics with a parameter that is described nowhere."""

        def __init__(self, own=1):
            super().__init__()
            self.own = own

    assert Own(2).own == 2
