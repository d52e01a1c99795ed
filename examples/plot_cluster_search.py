"""
A search on a cluster, and a corpus that is embedded by its workers
===================================================================

joblib's Dask backend runs the fits of a search on the workers of a cluster. Here the cluster is two
processes of this machine; with ``Client("tcp://scheduler:8786")`` it is any other. The recordings
are files that the workers open themselves, so the search sends paths and no signals. The results
equal those of the search in this process to the bit, with one thread on both sides.

::

    python examples/plot_cluster_search.py

The run takes about a minute, most of it to start the workers. It needs the extra ``cluster``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.corpus import dask_workers, embed_dataset
from sklearn_pulse.plotting import EmbeddingDisplay
from sklearn_pulse.windows import open_recordings, sliding_windows

OUTPUT = Path("output/cluster_search")


def write_recordings(folder):
    """Write a noisy oscillation per person and state; return the states and the people."""
    rng = np.random.default_rng(0)
    states, people = np.arange(12) % 2, np.arange(12) // 2
    for number, state in enumerate(states):
        signal = np.sin((0.3 + 0.25 * state) * np.arange(640) + rng.uniform(0, 6))
        signal = signal + 0.3 * rng.normal(size=640)
        np.save(folder / f"{number:02d}.npy", signal.astype(np.float32))
    return states, people


def make_search(folds, checkpoints):
    """Return a search over two settings of PULSE, small enough for an example."""
    pulse = PulseTransformer(
        embedding_dim=16,
        encoder_hidden_dim=16,
        encoder_depth=4,
        gru_hidden_dim=16,
        max_epochs=3,
        batch_size=32,
        num_threads=1,  # the number of threads decides how sums are rounded
        checkpoint_dir=checkpoints,  # a folder that all workers share: a killed fit goes on there
        random_state=0,
    )
    pipeline = make_pipeline(pulse, LogisticRegression(max_iter=1000))
    grid = {"pulsetransformer__n_crops": [1, 2]}
    return GridSearchCV(pipeline, grid, cv=folds)


def main():
    """Search here and on a cluster, and embed on the cluster."""
    # Imported here, since each worker imports this file.
    from dask.distributed import Client, LocalCluster

    OUTPUT.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "recordings").mkdir()
        states, people = write_recordings(folder / "recordings")
        recordings = open_recordings(folder / "recordings")
        w = sliding_windows(recordings, 64, 64, y=states, groups=people, lazy=True)
        folds = list(GroupKFold(3).split(w.X, w.y, w.groups))
        serial = make_search(folds, folder / "here").fit(w.X, w.y)

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster):
            # Every worker holds all that the fits need: the death of another one loses nothing.
            with dask_workers(w.X, w.y, folds):
                search = make_search(folds, folder / "there").fit(w.X, w.y)
            pulse, sink = search.best_estimator_[0], folder / "embedding.zarr"
            group = embed_dataset(pulse, w.X, sink, chunk_size=32)
        scores = [s.cv_results_["mean_test_score"] for s in (serial, search)]
        print("accuracy of the settings:", *scores[1].round(3))
        print("equal to the serial search:", np.array_equal(*scores))
        embedding = group["embedding"][:]
        print(f"{len(embedding)} windows embedded in {group['done'].shape[0]} chunks")

    fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
    EmbeddingDisplay.from_embedding(embedding, w.y, target_names=("slow", "fast"), ax=ax)
    ax.set_title("PULSE embeddings of two oscillations")
    fig.savefig(OUTPUT / "embedding.png", dpi=120)
    print(f"picture: {OUTPUT}/embedding.png")


if __name__ == "__main__":
    main()
