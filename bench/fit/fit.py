"""Fits the weights of the calibrated estimator, a table for each family, and judges them on held-out files.

    tokens(text) = sum over bytes of (P[row[previous byte]][column[byte]] + C[classes of the last four bytes]) / SCALE

1. Bounded ridge least squares over all pairs of bytes and all contexts, every sample weighted by 1 / its exact count,
   for two families that differ most.
2. Bytes that behave alike in both are merged, first as the previous byte (rows), then as the current one (columns).
3. For each family the merged weights are fitted, rounded, and the roundings corrected one weight at a time against
   the whole training set, so that their errors cancel instead of adding up.

Weights are not negative: an estimate never falls when text is appended. A table is the maps `rows` and `columns` of
256 bytes each, the weights row by row, and those of the contexts, one byte each.
"""

import argparse
import collections
import json
import math
import pathlib

import numpy as np
import scipy.optimize
import scipy.sparse as sparse

import corpus
import references

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / "crates/estimator/tables"
REPORT = ROOT / "bench/reports/fit.json"
SCALE = 64
ROWS, COLUMNS = 80, 72
PAIRS, CONTEXTS = 1 << 16, 1 << 12
RIDGE = {"pairs": 0.005, "contexts": 0.02}
ITERATIONS = 60
# The families by whose weights bytes are merged.
MERGING = ("o200k", "claude47")
# The conversations of the report: so many held-out windows of mixed classes.
CONVERSATIONS, MESSAGES = 400, 50


def classes() -> np.ndarray:
    """The class of each byte, as `CLASSES` of the crate has it."""
    found = np.zeros(256, dtype=np.int64)
    for byte in range(256):
        char = chr(byte)
        kinds = [char == " ", byte < 32, char in "0123456789", "a" <= char <= "z", "A" <= char <= "Z", byte < 0x80, byte < 0xC0, True]
        found[byte] = kinds.index(True)
    return found


def features(samples: list[dict]) -> sparse.csr_matrix:
    """Samples by 65,536 pairs of bytes and 4,096 contexts. NUL stands for what is before the first byte."""
    data, columns, ends = [], [], [0]
    of = classes()
    for sample in samples:
        raw = np.frombuffer(bytes(4) + sample["text"].encode(), dtype=np.uint8).astype(np.int64)
        kinds = of[raw]
        context = ((kinds[1:-3] * 8 + kinds[2:-2]) * 8 + kinds[3:-1]) * 8 + kinds[4:]
        found, times = np.unique(np.concatenate([raw[3:-1] * 256 + raw[4:], PAIRS + context]), return_counts=True)
        columns.append(found.astype(np.int32))
        data.append(times.astype(np.float32))
        ends.append(ends[-1] + len(found))
    shape = (len(samples), PAIRS + CONTEXTS)
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(columns), ends), shape=shape)


def importance(samples: list[dict]) -> np.ndarray:
    """Every class of content weighs the same; a script weighs half of one, the many Latin languages two."""
    groups = [(sample["group"], sample["name"]) for sample in samples]
    sizes = collections.Counter(groups)
    share = {group: 1.0 if group[0] == "content" else 2.0 if group[1] == "latin" else 0.5 for group in sizes}
    return np.array([share[group] / sizes[group] for group in groups]) * 1000


def start(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights before anything is known, and how strongly they are held to it."""
    prior = np.concatenate([np.full(pairs, 0.3), np.zeros(CONTEXTS)])
    ridge = np.concatenate([np.full(pairs, RIDGE["pairs"]), np.full(CONTEXTS, RIDGE["contexts"])])
    return prior, ridge


def solve(x, exact, weight, pairs):
    """min sum weight * (X w / exact - 1)^2 + ridge * |w - prior|^2, 0 <= w <= 255 / SCALE."""
    prior, ridge = start(pairs)
    scaled = (sparse.diags((np.sqrt(weight) / exact).astype(np.float32)) @ x).tocsr()
    # Columns of one length: without it what is rare is hardly moved.
    spread = 1 / np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel() + ridge)
    target = np.sqrt(weight).astype(np.float32) - scaled @ prior.astype(np.float32)
    scaled = (scaled @ sparse.diags(spread.astype(np.float32))).tocsr()
    transposed, pull = scaled.T.tocsr(), ridge * spread**2

    def loss(u):
        miss = scaled @ u.astype(np.float32) - target
        return float(miss @ miss + (pull * u) @ u), 2 * (transposed @ miss).astype(float) + 2 * pull * u

    bounds = scipy.optimize.Bounds(-prior / spread, (255 / SCALE - prior) / spread)
    options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "maxcor": 12}
    found = scipy.optimize.minimize(loss, np.zeros(len(prior)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return prior + spread * found.x


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


def merge(x, exact: dict, weight) -> tuple[np.ndarray, np.ndarray]:
    """The maps of bytes to rows and to columns."""
    weights, masses = [], []
    for family in MERGING:
        weights.append(solve(x, exact[family], weight, PAIRS)[:PAIRS].reshape(256, 256))
        # How much a weight matters: the squared share of its pair in the samples.
        shares = sparse.diags((np.sqrt(weight) / exact[family]).astype(np.float32)) @ x[:, :PAIRS]
        masses.append(np.asarray(shares.multiply(shares).sum(axis=0)).reshape(256, 256).astype(float))
    rows = cluster(np.hstack(weights), np.hstack(masses), ROWS)
    folded, heavy = [], []
    for full, mass in zip(weights, masses):
        sums, total = np.zeros((ROWS, 256)), np.zeros((ROWS, 256))
        np.add.at(sums, rows, full * mass)
        np.add.at(total, rows, mass)
        folded.append((sums / np.maximum(total, 1e-12)).T)
        heavy.append(total.T)
    return rows, cluster(np.hstack(folded), np.hstack(heavy), COLUMNS)


def folding(rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """All pairs and contexts by pairs of clusters and contexts."""
    target = np.concatenate([(rows[:, None] * COLUMNS + columns[None, :]).ravel(), ROWS * COLUMNS + np.arange(CONTEXTS)])
    size = PAIRS + CONTEXTS
    return sparse.csr_matrix((np.ones(size, np.float32), (np.arange(size), target)), shape=(size, ROWS * COLUMNS + CONTEXTS))


def quantise(x, exact, weight, weights) -> np.ndarray:
    """Rounds to bytes, then moves single weights by whole steps while that lowers the training loss."""
    ridge = start(ROWS * COLUMNS)[1]
    scaled = (sparse.diags(np.sqrt(weight) / exact) @ x).tocsc() / SCALE
    real = weights * SCALE
    now = np.clip(np.round(real), 0, 255)
    miss = scaled @ now - np.sqrt(weight)
    norms = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
    pull = ridge / SCALE**2
    for _ in range(3):
        moved = 0
        for index in np.argsort(-norms):
            low, high = scaled.indptr[index], scaled.indptr[index + 1]
            column, values = scaled.indices[low:high], scaled.data[low:high]
            slope = values @ miss[column] + pull[index] * (now[index] - real[index])
            step = np.round(-slope / (norms[index] + pull[index]))
            step = np.clip(now[index] + step, 0, 255) - now[index]
            if step:
                now[index] += step
                miss[column] += step * values
                moved += 1
        if not moved:
            break
    return now.astype(np.uint8)


def judged(samples, exact, estimate) -> dict:
    """Errors in percent by class: mean and p95; and of the sums of conversations."""
    found = collections.defaultdict(list)
    for sample, guess, count in zip(samples, estimate, exact):
        found[sample["group"], sample["name"]].append(abs(guess - count) / count * 100)
    report = {}
    for group in ("content", "script", "outside"):
        classes = {
            name: {"mean": round(float(np.mean(of)), 2), "p95": round(float(np.percentile(of, 95)), 2)}
            for (kind, name), of in sorted(found.items())
            if kind == group
        }
        worst = max(classes, key=lambda name: classes[name]["mean"])
        report[group] = {
            "mean": round(float(np.mean([of["mean"] for of in classes.values()])), 2),
            "p95": round(float(np.mean([of["p95"] for of in classes.values()])), 2),
            "worst": {"class": worst, **classes[worst]},
            "classes": classes,
        }
    rng = np.random.default_rng(1)
    content = np.flatnonzero([sample["group"] == "content" for sample in samples])
    picked = rng.choice(content, (CONVERSATIONS, MESSAGES))
    misses = np.abs(estimate[picked].sum(axis=1) / exact[picked].sum(axis=1) - 1) * 100
    report["conversation"] = {"mean": round(float(misses.mean()), 2), "p95": round(float(np.percentile(misses, 95)), 2)}
    return report


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dry-run", action="store_true", help="judge, but write neither tables nor the report")
    options = arguments.parse_args()

    samples = corpus.build()
    exact = {family: np.array(references.counts(family, [sample["text"] for sample in samples]), float) for family in references.FAMILIES}
    x = features(samples)
    train = np.array([sample["split"] == "train" for sample in samples])
    held = [sample for sample in samples if sample["split"] == "test"]
    weight = importance([sample for sample in samples if sample["split"] == "train"])
    print(f"{train.sum()} training windows, {len(held)} held out", flush=True)

    rows, columns = merge(x[train], {family: exact[family][train] for family in MERGING}, weight)
    fold = folding(rows, columns)
    seen, unseen = x[train] @ fold, x[~train] @ fold
    report = {}
    for family, counted in exact.items():
        table = quantise(seen, counted[train], weight, solve(seen, counted[train], weight, ROWS * COLUMNS))
        estimate = np.maximum(1, np.floor(unseen @ (table.astype(float) / SCALE) + 0.5))
        report[family] = judged(held, counted[~train], estimate)
        said = {group: (of["mean"], of["p95"], of["worst"]) for group, of in report[family].items() if "worst" in of}
        print(family, said, report[family]["conversation"], flush=True)
        if not options.dry_run:
            (OUT / f"{family}.bin").write_bytes(rows.astype(np.uint8).tobytes() + columns.astype(np.uint8).tobytes() + table.tobytes())
    if not options.dry_run:
        windows = {"train": int(train.sum()), "held out": len(held)}
        REPORT.write_text(json.dumps({"title": "Errors of the calibrated estimator in percent, on held-out files", "windows": windows, "families": report}, indent=2) + "\n")


if __name__ == "__main__":
    main()
