"""Bridge from skorch's epochs to scikit-learn's callbacks (1.9 and later)."""

from __future__ import annotations

from typing import Any

from skorch.callbacks import Callback

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in that never reports progress."""

        def _init_callback_context(self, **kwargs: Any) -> None:
            return None

    def with_callbacks(method: Any) -> Any:  # type: ignore[misc]
        """Return the method as it is."""
        return method


class ReportEpochs(Callback):
    """Report every epoch as a task of the estimator's fit.

    Parameters
    ----------
    estimator : estimator
        Whose fit runs.
    context : sklearn.callback.CallbackContext
        Root of the fit.
    data : dict
        ``X`` and ``y`` of the fit, for callbacks that score.
    """

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self.estimator = estimator
        self.context = context
        self.data = data

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Open the epoch's task."""
        self.task_ = self.context.subcontext(task_name="epoch")
        self.task_.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Close it; a callback may ask to stop training."""
        net.stop_training_ |= self.task_.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={"net_": net}, **self.data
        )

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Let go of the estimator, which will hold the net that holds this callback."""
        self.estimator = self.context = self.data = self.task_ = None
