"""Exact counts of the corpus by family: what the estimator is fitted to and judged by.

o200k, cl100k, Llama 3 and Qwen3 are counted by quicktok with the vocabularies that it ships. Gemini is the tokenizer
of Gemma 3, built from the vocabulary and merges that bpe-lite ships. Claude's tokenizers are not published: both are
the counts of ctok, a reconstruction from what the provider's counting endpoint answers, without the frame of a
message. Nothing of these packages is in the tables but weights that were fitted to their counts.

Counts are kept in .counts, by the hash of the text: the reconstruction counts 0.1 MB a second.
"""

import gzip
import hashlib
import json
import pathlib

HERE = pathlib.Path(__file__).parent
CACHE = HERE / ".counts"


def quicktok(name):
    def load():
        from quicktok import get_encoding

        encoding = get_encoding(name)
        return lambda text: len(encoding.encode_ordinary(text))

    return load


def ctok(name):
    def load():
        from ctok.engine import tile
        from ctok.main import _model

        model = _model(name)
        return lambda text: tile(text, model)[0]

    return load


def gemma():
    from tokenizers import AddedToken, Tokenizer, models, normalizers

    path = HERE / "sources/node_modules/bpe-lite/vocabs/gemini.json.gz"
    data = json.loads(gzip.decompress(path.read_bytes()))
    merges = [tuple(merge.split(" ")) for merge in data["merges"]]
    made = {left + right for left, right in merges}
    # Tags of HTML are tokens that no merge makes; so are control tokens, which in a text are text.
    control = {"<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>"}
    tags = [
        token
        for token in data["vocab"]
        if token[0] == "<" and len(token) > 1 and token not in made | control and not token.startswith(("<0x", "<unused"))
    ]
    model = models.BPE(vocab=data["vocab"], merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in tags])
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


FAMILIES = {
    "o200k": quicktok("o200k_base"),
    "cl100k": quicktok("cl100k_base"),
    "claude3": ctok("v3"),
    "claude47": ctok("v4.7"),
    "gemini": gemma,
    "llama3": quicktok("llama3"),
    "qwen3": quicktok("qwen3"),
}


# Counts of Claude and Gemini are slow: of 256 windows so many are counted, of the long recorded texts half, and all
# of the others.
COUNTED = {"claude3": 48, "claude47": 48, "gemini": 48}
LONG = 4000


def is_counted(family: str, sample: dict) -> bool:
    of = 256 if family not in COUNTED else COUNTED[family] if sample["group"] != "recorded" else 128 if len(sample["text"]) > LONG else 256
    return hashlib.sha256(sample["text"].encode()).digest()[0] < of


def counts(family: str, texts: list[str]) -> list[int]:
    CACHE.mkdir(exist_ok=True)
    path = CACHE / f"{family}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    keys = [hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
    missing = {key: text for key, text in zip(keys, texts) if key not in known}
    if missing:
        count = FAMILIES[family]()
        known |= {key: count(text) for key, text in missing.items()}
        path.write_text(json.dumps(known))
    return [known[key] for key in keys]
