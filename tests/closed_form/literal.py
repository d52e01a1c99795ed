"""The closed form stated literally, by loops over windows and pairs."""

import numpy as np
from scipy.linalg import fractional_matrix_power, inv

SMALL = {"num_kernels": 84, "n_components": 12, "embedding_dim": 16, "random_state": 0}


def literal_similarities(
    phi,
    recording,
    follows,
    alpha,
    rho,
    ceiling,
    whitening=0.0,
    nearest=0.0,
    unpredicted=0.1,
    is_apart=False,
):
    """Scalar products of embeddings, by loops over windows and pairs.

    A block with a map of its own (`is_apart`) gives small directions no weight.
    """
    f = phi - phi.mean(0)
    n, r = f.shape
    V, C, B, n_pairs = np.zeros((r, r)), np.zeros((r, r)), np.zeros((r, r)), 0
    n_with_others = sum(list(recording).count(i) > 1 for i in recording)
    for i in range(n):
        V += np.outer(f[i], f[i]) / n
        others = [j for j in range(n) if j != i and recording[j] == recording[i]]
        for j in others:
            B += np.outer(f[i], f[j]) / len(others) / n_with_others
        if follows[i]:
            C += (np.outer(f[i - 1], f[i]) + np.outer(f[i], f[i - 1])) / 2
            n_pairs += 1
    C /= n_pairs
    kappa = 1 - np.trace(B) / np.trace(C)
    if alpha == "auto":
        alpha = 0.5 if kappa > 0.25 else np.sqrt(max(kappa, 0))
    S = (1 - alpha) * (C + B) / 2 + alpha * (C - B)
    missed = literal_share_missed(f, recording, follows, rho)
    small = 0.0 if whitening or is_apart else (1 - unpredicted) * min(missed, 0.05)
    settings = V - alpha * B, rho, whitening, unpredicted, small
    if nearest:
        similarities = mapped_similarities(f, S, *settings)
        weights = literal_nearness(similarities, recording, np.cumsum(~follows))
        S = (1 - nearest) * S + nearest * literal_moment(f, weights)
    return kappa, alpha, ceiling * mapped_similarities(f, S, *settings)


def literal_nearness(similarities, recording, chain):
    """Weights of pairs of windows, by loops; windows of a chain follow one another."""
    n = len(similarities)
    mean = np.zeros((n, n))  # a row for each window, of the windows around it
    for i in range(n):
        around = [j for j in range(n) if abs(i - j) <= 2 and chain[i] == chain[j]]
        mean[i, around] = 1 / len(around)
    states = mean @ similarities @ mean.T
    weights = np.zeros((n, n))
    distance = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(n):
            if recording[i] != recording[j]:
                distance[i, j] = states[i, i] + states[j, j] - 2 * states[i, j]
    reach = np.sort(distance, axis=1)[:, max(3, round(0.05 * n)) - 1]
    for i in range(n):
        for j in range(n):
            if recording[i] != recording[j]:
                of_both = min(reach[i], reach[j])
                weights[i, j] = np.clip((1 - distance[i, j] / of_both) / 0.05, 0, 1)
    return weights


def literal_moment(f, weights):
    """Mean of ``f_i f_j'`` over pairs."""
    n, r = f.shape
    total = np.zeros((r, r))
    for i in range(n):
        for j in range(n):
            total += weights[i, j] * np.outer(f[i], f[j])
    return total / weights.sum()


def literal_share_missed(f, recording, follows, rho):
    """What pairs of windows have in common that a ridge of the other recordings misses.

    Of every second recording with a pair, the regression of the windows of its pairs on themselves
    is subtracted from the windows of the pairs of the others.
    """
    ends = np.flatnonzero(follows)
    paired = sorted({recording[i] for i in ends})
    half = [[i for i in ends if paired.index(recording[i]) % 2 == k] for k in range(2)]
    missed = common = 0.0
    for known, held_out in (half, half[::-1]):
        V = sum(np.outer(f[j], f[j]) for i in known for j in (i - 1, i))
        predict = inv(V + rho * np.trace(V) * np.eye(len(V))) @ V
        for i in held_out:
            missed += (f[i - 1] - f[i - 1] @ predict) @ f[i]
            common += f[i - 1] @ f[i]
    return max(missed / common, 0.0) if common > 0 else 0.0


def mapped_similarities(f, S, kept, rho, whitening=0.0, unpredicted=0.1, small=0.0):
    """Scalar products of ``f R``, of what predicts the other view, and of small directions."""
    V = f.T @ f / len(f)
    inverse = inv(V + rho * np.trace(V) * np.eye(len(V)))
    maps = [inverse @ S @ fractional_matrix_power(inverse, whitening / 2), inverse @ kept, inverse]
    maps = [m / np.sqrt(np.mean(np.sum((f @ m) ** 2, axis=1))) for m in maps]
    weights = 1 - unpredicted - small, unpredicted, small
    gram = sum(weight * m @ m.T for weight, m in zip(weights, maps, strict=True))
    return f @ gram @ f.T


def similarities_of_halves(transformer, X, rho):
    """Scalar products where the halves of a window predict the window."""
    f, *halves = (
        phi - phi.mean(0)
        for phi in (
            scaled_features(transformer, part)
            for part in (X, X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :])
        )
    )
    S = np.zeros((f.shape[1], f.shape[1]))
    for psi in halves:
        ridge = rho * np.sum(psi**2) * np.eye(psi.shape[1])
        S += f.T @ psi @ inv(psi.T @ psi + ridge) @ psi.T @ f / len(f) / 2
    return mapped_similarities(f, S, f.T @ f / len(f), rho)


def scaled_features(transformer, X):
    """Features, scaled as a block that has the whole variance."""
    phi = transformer.fit_transform(X).astype(np.float64)
    deviation = phi.std(0)
    varies = deviation > 0
    names = transformer.get_feature_names_out()
    has_unit = np.array([name.split("_")[1] in ("mean", "std", "min", "max") for name in names])
    for same in filter(np.any, (has_unit & varies, ~has_unit & varies)):
        deviation[same] = np.maximum(deviation[same], 0.01 * np.median(deviation[same]))
    phi = phi[:, varies] / deviation[varies]
    return phi / np.sqrt(phi.var(0).sum())
