"""Bridge from skorch's epochs to scikit-learn's callbacks (scikit-learn 1.9 and later)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from skorch.callbacks import Callback

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in that never reports progress."""

        def _init_callback_context(self, **kwargs: Any) -> None:
            return None

    def _with_callbacks(method: Any) -> Any:
        return method


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn's callbacks act during a method; its signature stays as it is."""
    decorated: Method = _with_callbacks(method)
    return decorated


def may_stop(estimator: Any) -> list[type]:
    """Return the classes of scikit-learn's callbacks that may stop a training; its own never do."""
    kinds = [type(callback) for callback in vars(estimator).get("_skl_callbacks", ())]
    return [kind for kind in kinds if kind.__module__.partition(".")[0] != "sklearn"]


class ReportEpochs(Callback):
    """Report every epoch as a task of the estimator's fit.

    Parameters
    ----------
    estimator : estimator
        Estimator whose fit runs.
    context : sklearn.callback.CallbackContext
        Context of the whole fit, to which the epochs are added.
    data : dict
        ``X`` and ``y`` of the fit, for callbacks that score.
    fitted : callable
        Function of the net that returns the attributes that a fit would leave if it ended now.
    """

    def __init__(
        self,
        estimator: Any,
        context: Any,
        data: dict[str, Any],
        fitted: Callable[[Any], dict[str, Any]],
    ) -> None:
        self.estimator = estimator
        self.context = context
        self.data = data
        self.fitted: Any = fitted

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Open the epoch's task."""
        self.task_ = self.context.subcontext(task_name="epoch")
        while self.task_.task_id < len(net.history) - 1:  # epochs that a resumed fit has done
            self.task_ = self.context.subcontext(task_name="epoch")
        self.task_.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Close the epoch's task; a callback may ask to stop the training."""
        net.stop_training_ |= self.task_.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.fitted(net),  # called if a callback asks
            **self.data,
        )

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Release the estimator, since it will hold the net that holds this callback."""
        self.estimator = self.context = self.task_ = self.fitted = None
        self.data = {}


__all__ = ["CallbackSupportMixin", "ReportEpochs", "may_stop", "with_callbacks"]
