"""How far estimates of held-out text are off: the table of `crates/core/src/tokens/bounds.rs`, and what its bounds hold.

    off = sqrt(lean^2 * sum of n_i^2 + FLOOR^2 * n^2) + root * sqrt(n),   lean = plain * (1 - other) + beyond * other

for texts of n_i estimated tokens, n in all, of whose bytes `other` are beyond ASCII. Every text has a kind that leans to one
side, all of it; several have several kinds. Words are off each by itself.

Shares are chosen by texts that the weights were not fitted to: one half of the held-out windows, and the recorded texts of the
half that is fitted to, each estimated by weights that were fitted without its source (of the largest: without its session).
They are those of the narrowest bounds at 1,000 tokens that hold for WANTED of the texts, classes weighing the same, and for
nearly as many of every size. The other half of the windows and the recorded texts of the other
half judge: texts as they are, and conversations of 50.
"""

import hashlib
import json

import numpy as np

import corpus
import fit
import references

REPORT = fit.ROOT / "bench/reports/bounds.json"
FLOOR = 0.018
# Of all texts, and of each size; less of those in other scripts, of which one source is nearly all.
WANTED, OF_SIZE = 0.993, 0.987
WANTED_OTHER, OF_SIZE_OTHER = 0.99, 0.98
# So many texts of a class and a size are judged by themselves.
ENOUGH = 100
# Sizes in tokens, from so many on.
SIZES = (1, 50, 300, 1000, 5000)
# Tokens at which bounds are to be narrow.
NARROW = 1000
# Bytes beyond ASCII from which on a class is one of other scripts.
OTHER = 0.1


def off(tokens, other, shares, squares=None):
    """Of `shares` = plain, beyond, root; of several texts with the sum of their `squares`."""
    lean = shares[0] * (1 - other) + shares[1] * other
    squares = tokens**2 if squares is None else squares
    return np.sqrt(lean**2 * squares + FLOOR**2 * tokens**2) + shares[2] * np.sqrt(tokens)


def crossed(of: fit.Counted, fold, table) -> np.ndarray:
    """Estimates by the table, of recorded texts that it was fitted to by weights that were fitted without their source."""
    found = of.estimates(fold, table)
    folds = np.array([sample.get("fold", -1) for sample in of.samples])
    for left_out in (folds == 0, folds == 1):
        x, *known = of.chosen(of.train & ~left_out)
        weights = fit.solve(x @ fold, *known, fit.ROWS * fit.COLUMNS)
        which = of.train & left_out
        found[which] = np.maximum(1, np.floor(of.x[which] @ fold @ weights + of.in_runs[which] + 0.5))
    return found


def cells(names, exact) -> np.ndarray:
    """The class and the size of each text, as one name."""
    return np.char.add(names, np.array([f", {SIZES[size - 1]:,}" for size in np.digitize(exact, SIZES)]))


def groups(cell):
    """The texts of each class and size that has enough of them."""
    kinds, of, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    return {str(kind): np.flatnonzero(of == at) for at, (kind, size) in enumerate(zip(kinds, sizes)) if size >= ENOUGH}


def fitted(tokens, exact, other, cell) -> np.ndarray:
    miss = np.maximum(0, np.abs(exact - tokens) - 1)
    _, of, counts = np.unique(cell, return_inverse=True, return_counts=True)
    weight = np.minimum(1 / ENOUGH, 1 / counts[of])
    sizes = np.digitize(exact, SIZES)
    is_plain = other < OTHER

    def hold(shares, which, wanted=WANTED, of_size=OF_SIZE) -> bool:
        held = miss <= off(tokens, other, shares)
        by = [which & (sizes == size) for size in np.unique(sizes)]
        every = [(which, wanted), *((of, of_size) for of in by if of.sum() >= ENOUGH)]
        return all(np.average(held[of], weights=weight[of]) >= share for of, share in every)

    def width(plain, root):
        return np.hypot(plain, FLOOR) + root / np.sqrt(NARROW)

    found = ((plain, root) for plain in np.arange(0, 0.3, 0.003) for root in np.arange(0.3, 2.5, 0.05))
    plain, root = next(of for of in sorted(found, key=lambda of: width(*of)) if hold((of[0], 0, of[1]), is_plain))
    of_others = ((plain, share, root) for share in np.arange(0, 0.6, 0.005))
    beyond = next((shares[1] for shares in of_others if hold(shares, ~is_plain, WANTED_OTHER, OF_SIZE_OTHER)), 0.6)
    return np.round([plain, beyond, root], 3)


def judged(tokens, exact, other, cell, samples, lengths, shares) -> dict:
    holds = np.abs(exact - tokens) <= np.floor(off(tokens, other, shares)) + 1
    by = {name: holds[of].mean() for name, of in groups(cell).items()}
    width = 2 * (np.floor(off(tokens, other, shares)) + 1) / tokens
    about = (tokens > 700) & (tokens < 1400)
    of = {group: np.array([sample["group"] == group for sample in samples]) for group in ("content", "script", "recorded")}
    report = {
        "shares": dict(zip(("plain", "beyond", "root"), map(float, shares))),
        "holds (%)": percent(holds.mean()),
        "classes and sizes": len(by),
        "of those at 99 % or more": int(sum(share >= 0.99 for share in by.values())),
        "worst": {name: percent(by[name]) for name in sorted(by, key=by.get)[:5]},
    }
    rng = np.random.default_rng(1)
    for group, which in of.items():
        if not which.any():
            continue
        report[f"holds, {group} (%)"] = percent(holds[which].mean())
        report[f"width at 1,000, {group} (%)"] = percent(np.median(width[which & about]))
        picked = rng.choice(np.flatnonzero(which & (lengths > fit.SHORT)), (fit.CONVERSATIONS, fit.MESSAGES))
        total, square = tokens[picked].sum(axis=1), (tokens[picked] ** 2).sum(axis=1)
        share = (other * lengths)[picked].sum(axis=1) / lengths[picked].sum(axis=1)
        room = off(total, share, shares, square) + 1
        report[f"holds, 50 of {group} (%)"] = percent((np.abs(exact[picked].sum(axis=1) - total) <= room).mean())
        report[f"width, 50 of {group} (%)"] = percent(np.median(2 * room / total))
    return report


def percent(share) -> float:
    return round(float(share) * 100, 2)


def main() -> None:
    # Of `rules` nearly all is runs and of `runs` all, which are off in ways of their own.
    samples = [sample for sample in corpus.build() if sample["group"] != "outside" and sample["name"] not in ("rules", "runs")]
    x = fit.features(samples)
    fold = fit.folding(*fit.maps())
    report = {}
    for family in references.FAMILIES:
        of = fit.Counted(family, samples, x)
        table = np.frombuffer((fit.OUT / f"{family}.bin").read_bytes()[512 : -2 * fit.RUNS], dtype=np.uint8)
        raw = [np.frombuffer(sample["text"].encode(), np.uint8) for sample in of.samples]
        is_recorded = np.array([sample["group"] == "recorded" for sample in of.samples])
        is_first = np.array([hashlib.sha256(sample["text"].encode()).digest()[1] % 2 == 0 for sample in of.samples])
        names = np.array([f"{sample['group']}: {sample['name']}" for sample in of.samples])
        known = {
            "tokens": crossed(of, fold, table),
            "exact": of.exact,
            "other": np.array([np.count_nonzero(text >= 0x80) / len(text) for text in raw]),
            "cell": cells(names, of.exact),
        }
        choosing = np.where(is_recorded, of.train, of.test & is_first)
        judging = of.test & ~choosing
        shares = fitted(**{name: values[choosing] for name, values in known.items()})
        held = [sample for sample, is_held in zip(of.samples, judging) if is_held]
        lengths = np.array([len(text) for text in raw])[judging]
        report[family] = judged(**{name: values[judging] for name, values in known.items()}, samples=held, lengths=lengths, shares=shares)
        print(family, report[family], flush=True)
    REPORT.write_text(json.dumps({"title": "Bounds of the calibrated estimator on held-out files and sessions", "families": report}, indent=2) + "\n")


if __name__ == "__main__":
    main()
