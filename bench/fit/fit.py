"""Fits the byte-bigram weights of the calibrated estimator and judges them on held-out files.

    tokens(text) = sum over bytes of W[row[previous byte]][column[byte]] / SCALE

1. Bounded ridge least squares over all pairs of bytes, every sample weighted by 1 / its exact count.
2. Bytes that behave alike are merged, first as the previous byte (rows), then as the current one (columns).
3. The merged weights are fitted again, rounded, and the roundings corrected one weight at a time against the
   whole training set, so that their errors cancel instead of adding up.

Weights are not negative: an estimate never falls when text is appended. The result is `ROWS` and `COLUMNS` maps of
256 bytes each, then the weights row by row, one byte each.
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess

import numpy as np
import scipy.optimize
import scipy.sparse as sparse

import corpus

HERE = pathlib.Path(__file__).parent
OUT = HERE.parents[1] / "crates/core/src/tokens/o200k.bin"
SCALE = 128
ROWS, COLUMNS = 104, 93
# The byte before the first one: text has no NUL, so its row is free.
START = 0
RIDGE = 0.005
ITERATIONS = 300


def counts(samples: list[dict]) -> np.ndarray:
    lines = "".join(json.dumps(sample["text"]) + "\n" for sample in samples)
    found = subprocess.run(["node", HERE / "count.mjs"], input=lines, capture_output=True, text=True, check=True)
    return np.array(found.stdout.split(), dtype=np.int64)


def bigrams(samples: list[dict]) -> sparse.csr_matrix:
    """Samples by 65,536 pairs of bytes."""
    data, columns, ends = [], [], [0]
    for sample in samples:
        raw = np.frombuffer(bytes([START]) + sample["text"].encode(), dtype=np.uint8).astype(np.int64)
        pairs, times = np.unique(raw[:-1] * 256 + raw[1:], return_counts=True)
        columns.append(pairs)
        data.append(times)
        ends.append(ends[-1] + len(pairs))
    shape = (len(samples), 65536)
    return sparse.csr_matrix((np.concatenate(data).astype(float), np.concatenate(columns), ends), shape=shape)


def importance(samples: list[dict]) -> np.ndarray:
    """Every class of content weighs the same; a script weighs half of one, the many Latin languages two."""
    groups = [(sample["group"], sample["name"]) for sample in samples]
    sizes = collections.Counter(groups)
    share = {group: 1.0 if group[0] == "content" else 2.0 if group[1] == "latin" else 0.5 for group in sizes}
    return np.array([share[group] / sizes[group] for group in groups]) * 1000


def solve(features, exact, weight, ridge, prior, most):
    """min sum weight * (X w / exact - 1)^2 + ridge * |w - prior|^2, 0 <= w <= most; what is never seen stays."""
    seen = np.flatnonzero(np.diff(features.tocsc().indptr))
    scaled = (sparse.diags(np.sqrt(weight) / exact) @ features)[:, seen]
    transposed, target, start = scaled.T.tocsr(), np.sqrt(weight), prior[seen]

    def loss(w):
        miss, away = scaled @ w - target, w - start
        return miss @ miss + ridge * (away @ away), 2 * (transposed @ miss) + 2 * ridge * away

    bounds = scipy.optimize.Bounds(0, most)
    options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS}
    weights = prior.copy()
    weights[seen] = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return weights


def cluster(weights: np.ndarray, mass: np.ndarray, wanted: int) -> np.ndarray:
    """Merges rows that cost least to merge (Ward's criterion per column, by mass) until `wanted` are left."""
    size = len(weights)
    sums, total = weights * mass, mass.copy()
    label = np.arange(size)
    alive = np.ones(size, dtype=bool)

    def cost(a):
        both = total[a] + total
        mean = (sums[a] + sums) / np.maximum(both, 1e-12)
        own, other = sums[a] / np.maximum(total[a], 1e-12), sums / np.maximum(total, 1e-12)
        found = (total[a] * (own - mean) ** 2 + total * (other - mean) ** 2).sum(axis=1)
        found[a] = math.inf
        return found

    costs = np.array([cost(a) for a in range(size)])
    for _ in range(size - wanted):
        a, b = sorted(divmod(int(np.argmin(costs)), size))
        sums[a] += sums[b]
        total[a] += total[b]
        label[label == b] = a
        alive[b] = False
        costs[b, :] = costs[:, b] = math.inf
        fresh = np.where(alive, cost(a), math.inf)
        costs[a, :] = costs[:, a] = fresh
    return np.unique(label, return_inverse=True)[1]


def merged(rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """65,536 pairs by pairs of clusters."""
    wide = columns.max() + 1
    target = (rows[:, None] * wide + columns[None, :]).ravel()
    shape = (65536, (rows.max() + 1) * wide)
    return sparse.csr_matrix((np.ones(65536), (np.arange(65536), target)), shape=shape)


def quantise(features, exact, weight, ridge, weights) -> np.ndarray:
    """Rounds to bytes, then moves single weights by whole steps while that lowers the training loss."""
    scaled = (sparse.diags(np.sqrt(weight) / exact) @ features).tocsc() / SCALE
    real = weights * SCALE
    now = np.clip(np.round(real), 0, 255)
    miss = scaled @ now - np.sqrt(weight)
    norms = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
    pull = ridge / SCALE**2
    for _ in range(4):
        moved = 0
        for index in np.argsort(-norms):
            low, high = scaled.indptr[index], scaled.indptr[index + 1]
            column, values = scaled.indices[low:high], scaled.data[low:high]
            slope = values @ miss[column] + pull * (now[index] - real[index])
            step = np.round(-slope / (norms[index] + pull))
            step = np.clip(now[index] + step, 0, 255) - now[index]
            if step:
                now[index] += step
                miss[column] += step * values
                moved += 1
        if not moved:
            break
    return now.astype(np.uint8)


def errors(samples, estimate, exact):
    found = collections.defaultdict(list)
    for sample, guess, count in zip(samples, estimate, exact):
        found[sample["group"], sample["name"]].append(abs(guess - count) / count)
    return {key: (np.mean(list_), np.percentile(list_, 95)) for key, list_ in found.items()}


def report(samples, exact, estimate) -> None:
    chars = np.array([(len(sample["text"]) + 2) // 4 for sample in samples])
    ours, plain = errors(samples, estimate, exact), errors(samples, chars, exact)
    print(f"\n{'held-out':24}{'mean %':>8}{'p95 %':>8}   chars/4: mean %   p95 %")
    for key in sorted(ours):
        a, b = ours[key], plain[key]
        print(f"{key[0]:8}{key[1]:16}{a[0] * 100:8.1f}{a[1] * 100:8.1f}{b[0] * 100:18.1f}{b[1] * 100:8.1f}")
    for group in ("content", "script", "outside"):
        for name, table in (("calibrated", ours), ("chars/4", plain)):
            rows = {key: value for key, value in table.items() if key[0] == group}
            worst = max(rows, key=lambda key: rows[key][0])
            mean, high = np.mean([row[0] for row in rows.values()]), np.mean([row[1] for row in rows.values()])
            print(f"{group}: {name:12} mean {mean * 100:5.2f} %  p95 {high * 100:5.1f} %  worst {worst[1]} {rows[worst][0] * 100:.1f} %")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dry-run", action="store_true", help="judge, but do not write the table")
    options = arguments.parse_args()

    samples = corpus.build()
    exact = counts(samples)
    pairs = bigrams(samples)
    train = np.array([sample["split"] == "train" for sample in samples])
    print(f"{train.sum()} training windows, {(~train).sum()} held out, {exact.sum()} tokens")

    x, y, weight = pairs[train], exact[train].astype(float), importance([s for s in samples if s["split"] == "train"])
    prior = np.full(65536, 0.3)
    full = solve(x, y, weight, RIDGE, prior, 255 / SCALE).reshape(256, 256)

    # How much a weight matters: the squared share of its pair in the samples.
    shares = sparse.diags(np.sqrt(weight) / y) @ x
    mass = np.asarray(shares.multiply(shares).sum(axis=0)).reshape(256, 256)
    rows = cluster(full, mass, ROWS)
    fold = np.zeros((ROWS, 256))
    np.add.at(fold, rows, full * mass)
    heavy = np.zeros((ROWS, 256))
    np.add.at(heavy, rows, mass)
    columns = cluster((fold / np.maximum(heavy, 1e-12)).T, heavy.T, COLUMNS)

    fold_pairs = merged(rows, columns)
    start = np.full(fold_pairs.shape[1], 0.3)
    small = solve(x @ fold_pairs, y, weight, RIDGE, start, 255 / SCALE)
    table = quantise(x @ fold_pairs, y, weight, RIDGE, small)

    held = [sample for sample in samples if sample["split"] == "test"]

    def judge(title, weights):
        print(title, end="")
        units = pairs[~train] @ weights
        guess = np.maximum(1, np.floor(units + 0.5))
        report(held, exact[~train], guess)

    judge("all pairs", full.ravel())
    judge("merged", fold_pairs @ small)
    judge("table", fold_pairs @ (table.astype(float) / SCALE))
    if not options.dry_run:
        OUT.write_bytes(rows.astype(np.uint8).tobytes() + columns.astype(np.uint8).tobytes() + table.tobytes())
        print(f"{OUT.relative_to(HERE.parents[1])}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
