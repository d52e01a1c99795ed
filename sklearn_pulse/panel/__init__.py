"""Transformers of this package behind sktime's interface, for panels of pandas, numpy and lists.

This package needs sktime (``pip install 'sklearn-pulse[sktime]'``). No other part of
`sklearn_pulse` imports sktime when it is loaded.
"""

from .._extras import needs

with needs("sklearn_pulse.panel needs sktime", "sktime"):
    import sktime  # noqa: F401

from ._pulse import PulsePanelTransformer
from ._wrapped import PanelTransformer, as_panel_transformer

__all__ = ["PanelTransformer", "PulsePanelTransformer", "as_panel_transformer"]
