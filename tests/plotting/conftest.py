import matplotlib
import pytest


@pytest.fixture(autouse=True)
def headless():
    """Draw to no screen, with the settings of Matplotlib itself instead of the user's."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.use("Agg")
        settings = dict(matplotlib.rcParams)
        yield plt
        assert dict(matplotlib.rcParams) == settings
    plt.close("all")


@pytest.fixture
def legend():
    """Texts of the legend of some axes."""
    return lambda ax: [text.get_text() for text in ax.get_legend().get_texts()]
