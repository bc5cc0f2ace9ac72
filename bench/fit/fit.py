"""Fits the weights of the calibrated estimator, a table for each family, and judges them on held-out files.

    tokens(text) = sum over bytes of (P[row[previous byte]][column[byte]] + C[classes of the last four bytes]) / SCALE

In a run of one character, from its eighth byte on (its fourth character of three bytes), a byte weighs what the run does
instead: as many tokens as the family counts for a long one, and nothing of that is fitted to text.

1. Bounded ridge least squares over all pairs of bytes and all contexts, every sample weighted by 1 / its exact count,
   for two families that differ most.
2. Bytes that behave alike in both are merged, first as the previous byte (rows), then as the current one (columns). Both steps
   are left out without `--merge`: then bytes stay as they were merged before.
3. For each family the merged weights are fitted, rounded, and the roundings corrected one weight at a time against
   the whole training set, so that their errors cancel instead of adding up.

Weights are not negative: an estimate never falls when text is appended. A table is the maps `rows` and `columns` of
256 bytes each, the weights row by row, those of the contexts, one byte each, and those of runs, two bytes each.
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
PAIRS, CONTEXTS, RUNS = 1 << 16, 1 << 12, 256
# Bytes that go on with a run before it has weights of its own, and units of one.
RUN, RUN_SCALE = 7, 1024
# Lengths that runs are counted at: what a long one is cut into divides their difference.
LONG_RUNS = 104, 1000
# Characters of three bytes that runs are made of.
OFTEN = "─━═│┃║█▓▒░▄▀■□▪▬●○•★☆—–…→　。、！？～＝＿－ーㅋㅎㅠㅜ哈啊笑草呵嘿あうー✓⠀▏⬛⬜"
RIDGE = {"pairs": 0.04, "contexts": 0.16}
ITERATIONS = 60
SHARES = {"content": 1.0, "script": 0.5, "recorded": 5.0}
# Tokens of a text whose words are off by as much as its kind leans: shorter ones say less of a kind.
NOISE = 20
# The families by whose weights bytes are merged.
MERGING = ("o200k", "claude47")
# Characters of recorded texts that are judged apart.
SHORT = 32
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


def runs(raw: np.ndarray) -> np.ndarray:
    """Which bytes go on with a run that has weights of its own: see `units` of the crate."""
    goes_on = np.zeros(len(raw), dtype=bool)
    goes_on[4:] = np.where(raw[4:] < 0x80, raw[4:] == raw[3:-1], raw[4:] == raw[1:-3])
    at = np.arange(len(raw))
    return at - np.maximum.accumulate(np.where(goes_on, 0, at)) >= RUN


def run_of(first, second, third):
    """Which weight a character of three bytes has: see `Table::run` of the crate."""
    return 0x80 | (13 * first + 118 * second + third) & 0x7F


def features(samples: list[dict]) -> sparse.csr_matrix:
    """Samples by 65,536 pairs of bytes, 4,096 contexts and 256 runs. NUL stands for what is before the first byte."""
    data, columns, ends = [], [], [0]
    of = classes()
    for sample in samples:
        raw = np.frombuffer(bytes(4) + sample["text"].encode(), dtype=np.uint8).astype(np.int64)
        kinds = of[raw]
        context = ((kinds[1:-3] * 8 + kinds[2:-2]) * 8 + kinds[3:-1]) * 8 + kinds[4:]
        pair = raw[3:-1] * 256 + raw[4:]
        inside = runs(raw)[4:]
        if inside.any():
            first, second, byte = raw[2:-2][inside], raw[3:-1][inside], raw[4:][inside]
            is_whole = (byte < 0x80) | (first >= 0xE0)
            run = np.where(byte < 0x80, byte, run_of(first, second, byte))[is_whole]
            pair, context = pair[~inside], context[~inside]
        else:
            run = np.zeros(0, dtype=np.int64)
        found, times = np.unique(np.concatenate([pair, PAIRS + context, PAIRS + CONTEXTS + run]), return_counts=True)
        columns.append(found.astype(np.int32))
        data.append(times.astype(np.float32))
        ends.append(ends[-1] + len(found))
    shape = (len(samples), PAIRS + CONTEXTS + RUNS)
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(columns), ends), shape=shape)


def weights_of_runs(family: str) -> np.ndarray:
    """By how much longer runs cost more. Of characters of three bytes that share a weight those decide that runs are made of."""
    others = [chr(code) for block in ((0x2010, 0x2044), (0x2190, 0x2400), (0x2460, 0x27C0), (0x3000, 0x3100), (0x4E00, 0x9FA0), (0xAC00, 0xD7A0)) for code in range(*block, 7)]
    chars = {0x80 | at: [] for at in range(128)}
    for char in [*dict.fromkeys(OFTEN), *others]:
        of = chars[run_of(*char.encode())]
        if char in OFTEN or not any(other in OFTEN for other in of) and len(of) < 2:
            of.append(char)
    chars |= {code: [chr(code)] for code in range(0x80)}
    short, long = LONG_RUNS
    texts = [f"x\n{char * times}\nx" for of in chars.values() for char in of for times in LONG_RUNS]
    counted = iter(references.counts(family, texts))
    found = np.zeros(RUNS)
    for at, of in chars.items():
        costs = [-(next(counted) - next(counted)) / (long - short) for _ in of]
        found[at] = np.mean(costs) if costs else np.nan
    found[np.isnan(found)] = np.nanmedian(found[0x80:])
    return np.clip(np.round(found * RUN_SCALE), 0, 0xFFFF).astype(int)


def importance(samples: list[dict]) -> np.ndarray:
    """Every class of content weighs the same; a recorded one as much as five, a script half, the many Latin languages two."""
    groups = [(sample["group"], sample["name"]) for sample in samples]
    sizes = collections.Counter(groups)
    share = {group: SHARES[group[0]] if group[1] != "latin" else 2.0 for group in sizes}
    return np.array([share[group] / sizes[group] for group in groups]) * 1000


def start(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights before anything is known, and how strongly they are held to it."""
    prior = np.concatenate([np.full(pairs, 0.3), np.zeros(CONTEXTS)])
    ridge = np.concatenate([np.full(pairs, RIDGE["pairs"]), np.full(CONTEXTS, RIDGE["contexts"])])
    return prior, ridge


def solve(x, exact, in_runs, weight, pairs):
    """min sum weight * ((X w + in_runs) / exact - 1)^2 + ridge * |w - prior|^2, 0 <= w <= 255 / SCALE."""
    prior, ridge = start(pairs)
    scaled = (sparse.diags((np.sqrt(weight) / exact).astype(np.float32)) @ x).tocsr()
    # Columns of one length: without it what is rare is hardly moved.
    spread = 1 / np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel() + ridge)
    target = (np.sqrt(weight) * (1 - in_runs / exact)).astype(np.float32) - scaled @ prior.astype(np.float32)
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


def merge(counted: dict) -> tuple[np.ndarray, np.ndarray]:
    """The maps of bytes to rows and to columns."""
    weights, masses = [], []
    for x, exact, in_runs, weight in counted.values():
        weights.append(solve(x, exact, in_runs, weight, PAIRS)[:PAIRS].reshape(256, 256))
        # How much a weight matters: the squared share of its pair in the samples.
        shares = sparse.diags((np.sqrt(weight) / exact).astype(np.float32)) @ x[:, :PAIRS]
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


def maps() -> tuple[np.ndarray, np.ndarray]:
    """The maps of the tables that there are."""
    table = np.frombuffer((OUT / "o200k.bin").read_bytes(), dtype=np.uint8)
    return table[:256].astype(int), table[256:512].astype(int)


def folding(rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """All pairs and contexts by pairs of clusters and contexts."""
    target = np.concatenate([(rows[:, None] * COLUMNS + columns[None, :]).ravel(), ROWS * COLUMNS + np.arange(CONTEXTS)])
    size = PAIRS + CONTEXTS
    return sparse.csr_matrix((np.ones(size, np.float32), (np.arange(size), target)), shape=(size, ROWS * COLUMNS + CONTEXTS))


def quantise(x, exact, in_runs, weight, weights) -> np.ndarray:
    """Rounds to bytes, then moves single weights by whole steps while that lowers the training loss."""
    ridge = start(ROWS * COLUMNS)[1]
    scaled = (sparse.diags(np.sqrt(weight) / exact) @ x).tocsc() / SCALE
    real = weights * SCALE
    now = np.clip(np.round(real), 0, 255)
    miss = scaled @ now - np.sqrt(weight) * (1 - in_runs / exact)
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


def summary(found: dict) -> dict:
    """Errors in percent: means over the classes, the worst of them, and each."""
    classes = {name: {"mean": round(float(np.mean(of)), 2), "p95": round(float(np.percentile(of, 95)), 2), "texts": len(of)} for name, of in sorted(found.items())}
    worst = max(classes, key=lambda name: classes[name]["mean"])
    mean, p95 = (round(float(np.mean([of[figure] for of in classes.values()])), 2) for figure in ("mean", "p95"))
    return {"mean": mean, "p95": p95, "worst": {"class": worst, **classes[worst]}, "classes": classes}


def judged(samples, exact, estimate) -> dict:
    """Errors in percent by class: mean and p95; and of the sums of conversations."""
    found, sources = collections.defaultdict(lambda: collections.defaultdict(list)), collections.defaultdict(list)
    for sample, guess, count in zip(samples, estimate, exact):
        # Texts of a few tokens are off by one, which is much of them.
        if sample["group"] == "recorded" and len(sample["text"]) <= SHORT:
            continue
        miss = abs(guess - count) / count * 100
        found[sample["group"]][sample["name"]].append(miss)
        if "source" in sample:
            sources[sample["source"]].append(miss)
    report = {group: summary(of) for group, of in found.items()}
    if "recorded" in report:
        report["recorded"]["sources"] = summary(sources)["classes"]
    for group, name in (("content", "conversation"), ("recorded", "recorded conversation")):
        of = np.flatnonzero([sample["group"] == group for sample in samples])
        if len(of):
            picked = np.random.default_rng(1).choice(of, (CONVERSATIONS, MESSAGES))
            misses = np.abs(estimate[picked].sum(axis=1) / exact[picked].sum(axis=1) - 1) * 100
            report[name] = {"mean": round(float(misses.mean()), 2), "p95": round(float(np.percentile(misses, 95)), 2)}
    return report


class Counted:
    """The samples that are counted for a family, as they are fitted to."""

    def __init__(self, family: str, samples: list[dict], x: sparse.csr_matrix):
        of = np.flatnonzero([references.is_counted(family, sample) for sample in samples])
        self.samples = [samples[at] for at in of]
        self.exact = np.array(references.counts(family, [sample["text"] for sample in self.samples]), float)
        self.runs = weights_of_runs(family)
        self.x = x[of][:, : PAIRS + CONTEXTS]
        self.in_runs = x[of][:, PAIRS + CONTEXTS :] @ (self.runs / RUN_SCALE)
        self.train = np.array([sample["split"] == "train" for sample in self.samples]) & (self.exact > 0)
        self.test = ~self.train & (self.exact > 0)

    def fitted_to(self):
        return self.chosen(self.train)

    def chosen(self, which: np.ndarray):
        exact = self.exact[which]
        weight = importance([sample for sample, is_chosen in zip(self.samples, which) if is_chosen])
        return self.x[which], exact, self.in_runs[which], weight * exact / (exact + NOISE)

    def estimates(self, fold: sparse.csr_matrix, table: np.ndarray) -> np.ndarray:
        return np.maximum(1, np.floor(self.x @ fold @ (table.astype(float) / SCALE) + self.in_runs + 0.5))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dry-run", action="store_true", help="judge, but write neither tables nor the report")
    arguments.add_argument("--merge", action="store_true", help="merge bytes anew; else the maps of the tables that there are stay")
    options = arguments.parse_args()

    samples = corpus.build()
    x = features(samples)
    counted = {family: Counted(family, samples, x) for family in references.FAMILIES}
    del x
    print(f"{sum(sample['split'] == 'train' for sample in samples)} training windows of {len(samples)}", flush=True)

    rows, columns = merge({family: counted[family].fitted_to() for family in MERGING}) if options.merge else maps()
    fold = folding(rows, columns)
    report = {}
    for family, of in counted.items():
        x, *known = of.fitted_to()
        x = x @ fold
        table = quantise(x, *known, solve(x, *known, ROWS * COLUMNS))
        held = [sample for sample, test in zip(of.samples, of.test) if test]
        report[family] = judged(held, of.exact[of.test], of.estimates(fold, table)[of.test])
        said = {group: (found["mean"], found["p95"], found["worst"]) for group, found in report[family].items() if "worst" in found}
        print(family, said, report[family]["conversation"], report[family].get("recorded conversation"), flush=True)
        if not options.dry_run:
            parts = rows.astype(np.uint8), columns.astype(np.uint8), table, of.runs.astype("<u2")
            (OUT / f"{family}.bin").write_bytes(b"".join(part.tobytes() for part in parts))
    if not options.dry_run:
        windows = {"train": sum(sample["split"] == "train" for sample in samples), "held out": sum(sample["split"] == "test" for sample in samples)}
        REPORT.write_text(json.dumps({"title": "Errors of the calibrated estimator in percent, on held-out files and sessions", "windows": windows, "families": report}, indent=2) + "\n")


if __name__ == "__main__":
    main()
