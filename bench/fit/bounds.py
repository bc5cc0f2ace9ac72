"""How far estimates of held-out text are off: the table of `crates/core/src/tokens/bounds.rs`, and what its bounds hold.

    off^2 = n^2 * (lean^2 / (1 + n / 1000) + FLOOR^2) + root^2 * n,   lean = plain * (1 - other) + beyond * other

for a text of n estimated tokens of whose bytes `other` are beyond ASCII. Every text has a kind that leans to one side; in
a long text there are many kinds, and what is left is what the family leans by. Words are off each by itself.

The shares are fitted to one half of the held-out windows, by least squares over squared residuals (each class weighs the
same), and made as large as 99 of 100 of those need. The other half judges: windows as they are, and documents of 1,000 and
50,000 tokens put together of one class, and of all.
"""

import hashlib
import json

import numpy as np
import scipy.optimize

import corpus
import fit
import references

REPORT = fit.ROOT / "bench/reports/bounds.json"
LENGTH, FLOOR = 1000, 0.018
WANTED = 0.994
# The reconstruction of Claude's counts is slow: so many of 256 windows are counted.
COUNTED = {"claude3": 80, "claude47": 80}
DOCUMENTS = 60


def estimates(samples: list[dict], family: str) -> np.ndarray:
    table = np.frombuffer((fit.OUT / f"{family}.bin").read_bytes(), dtype=np.uint8)
    rows, columns = table[:256].astype(int), table[256:512].astype(int)
    return fit.features(samples) @ fit.folding(rows, columns) @ (table[512:].astype(float) / fit.SCALE)


def off(tokens, other, shares):
    """Of `shares` = plain, beyond, root."""
    lean = shares[0] * (1 - other) + shares[1] * other
    return np.sqrt(tokens**2 * (lean**2 / (1 + tokens / LENGTH) + FLOOR**2) + shares[2] ** 2 * tokens)


def quantile(values, weights, share):
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return values[order][np.searchsorted(reached, share * reached[-1])]


def fitted(tokens, exact, other, weights) -> np.ndarray:
    residual = ((exact - tokens) / tokens) ** 2
    decay = 1 / (1 + tokens / LENGTH)
    parts = np.stack([(1 - other) * decay, other * decay, 1 / tokens], axis=1)
    found = np.full(3, 1e-3)
    for _ in range(8):
        # What is far out must not decide alone.
        expected = parts @ found + 1e-6
        scale = np.sqrt(weights) / expected
        found, _ = scipy.optimize.nnls(parts * scale[:, None], np.minimum(residual, 16 * expected) * scale)
    shares = np.sqrt(found)
    grown = np.linspace(1, 6, 501)
    covered = [np.average(np.abs(exact - tokens) <= off(tokens, other, times * shares) + 1, weights=weights) for times in grown]
    times = grown[np.searchsorted(np.maximum.accumulate(covered), WANTED)]
    return np.ceil(shares * times * 1000) / 1000


def judged(tokens, exact, other, names, lengths, first) -> dict:
    """The shares fitted to the windows that are `first`, and what they hold of the others."""
    kinds, of, sizes = np.unique(names, return_inverse=True, return_counts=True)
    weights = 1 / sizes[of]
    shares = fitted(tokens[first], exact[first], other[first], weights[first])
    rest = ~first
    holds = np.abs(exact - tokens) <= off(tokens, other, shares) + 1
    by = {kind: holds[rest & (names == kind)].mean() for kind in kinds}
    worst = min(by, key=by.get)
    width = 2 * off(tokens, other, shares) / tokens
    about = rest & (tokens > 700) & (tokens < 1400)
    content = np.char.startswith(names, "content")
    rng = np.random.default_rng(1)
    inside, mixed, widths = [], [], []
    for kind in [*kinds, "all"]:
        pool = np.flatnonzero(rest & (content if kind == "all" else names == kind))
        for _ in range(DOCUMENTS):
            picked = rng.choice(pool, max(1, int(50_000 / tokens[pool].mean())))
            total = tokens[picked].sum()
            room = off(total, np.average(other[picked], weights=lengths[picked]), shares)
            (mixed if kind == "all" else inside).append(abs(exact[picked].sum() - total) <= room)
            widths.append(2 * room / total)
    return {
        "shares": {"plain": shares[0], "beyond": shares[1], "root": shares[2]},
        "holds (%)": percent(np.average(holds[rest], weights=weights[rest])),
        "worst class": f"{worst}, {percent(by[worst])}",
        "holds at 1,000 (%)": percent(np.average(holds[about], weights=weights[about])),
        "width at 1,000, content (%)": percent(np.median(width[about & content])),
        "width at 1,000, scripts (%)": percent(np.median(width[about & ~content])),
        "holds at 50,000, one class (%)": percent(np.mean(inside)),
        "holds at 50,000, mixed (%)": percent(np.mean(mixed)),
        "width at 50,000 (%)": percent(np.median(widths)),
    }


def percent(share) -> float:
    return round(float(share) * 100, 2)


def main() -> None:
    held = [sample for sample in corpus.build() if sample["split"] == "test" and sample["group"] != "outside"]
    keys = [hashlib.sha256(sample["text"].encode()).digest() for sample in held]
    report = {}
    for family in references.FAMILIES:
        counted = [at for at, key in enumerate(keys) if key[0] < COUNTED.get(family, 256)]
        samples = [held[at] for at in counted]
        raw = [np.frombuffer(sample["text"].encode(), np.uint8) for sample in samples]
        report[family] = judged(
            tokens=np.maximum(1, np.floor(estimates(samples, family) + 0.5)),
            exact=np.array(references.counts(family, [sample["text"] for sample in samples]), float),
            other=np.array([np.count_nonzero(text >= 0x80) / len(text) for text in raw]),
            names=np.array([f"{sample['group']}: {sample['name']}" for sample in samples]),
            lengths=np.array([len(text) for text in raw]),
            first=np.array([keys[at][1] % 2 == 0 for at in counted]),
        )
        print(family, report[family], flush=True)
    REPORT.write_text(json.dumps({"title": "Bounds of the calibrated estimator on held-out files", "families": report}, indent=2) + "\n")


if __name__ == "__main__":
    main()
