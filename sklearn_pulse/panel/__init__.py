"""At home in sktime: our transformers as sktime's, on panels of every kind.

This room needs sktime (``pip install sklearn-pulse[sktime]``); no other imports it when loaded.
"""

try:
    import sktime  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sklearn_pulse.panel needs sktime: pip install sklearn-pulse[sktime]"
    ) from error

from ._pulse import PulsePanelTransformer
from ._wrapped import PanelTransformer, as_panel_transformer

__all__ = ["PanelTransformer", "PulsePanelTransformer", "as_panel_transformer"]
