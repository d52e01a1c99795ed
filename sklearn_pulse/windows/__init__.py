"""Windows of recordings, cut before a pipeline or inside it by a transformer.

scikit-learn forbids a pipeline step that changes the number of samples. If every window has its
own label, cut the windows before the pipeline (`sliding_windows`, `segment_windows`,
`random_windows`). If every recording has one label, `SlidingWindows` turns each recording into a
bag of windows inside the pipeline.
"""

from .._inputs._files import RecordingFile, open_recordings
from .._inputs._lazy import LazyWindows
from ._bags import SlidingWindows
from ._lazy import RecordingWindows
from ._random import random_windows
from ._segment import segment_windows
from ._sliding import sliding_windows

__all__ = [
    "LazyWindows",
    "RecordingFile",
    "RecordingWindows",
    "SlidingWindows",
    "open_recordings",
    "random_windows",
    "segment_windows",
    "sliding_windows",
]
