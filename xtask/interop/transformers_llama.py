"""A tiny Llama of transformers, and what transformers makes of the directories that tenfold writes of it.

usage: transformers_llama.py TENFOLD FOLDER

Prints one JSON list: for every directory how many tensors were compared, or what went wrong.
"""

import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

# Nothing is fetched: the model and its tokenizer are made here.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = ["<unk>", "<s>", "</s>", *(f"word{n}" for n in range(125))]
TEXT = "word1 word2 word3 word100"


def make(folder, shard_size):
    """Writes the model, its configuration and its tokenizer."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder, max_shard_size=shard_size)
    words = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>").save_pretrained(folder)
    # What training leaves behind, and what must not be in the way.
    torch.save({"state": torch.zeros(3)}, folder / "optimizer.pt")
    torch.save({"lr": 0.1}, folder / "training_args.bin")


def load(folder, kind=AutoModelForCausalLM, dtype=torch.float32):
    """The model, with every tensor of it found under its name."""
    model, info = kind.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    allowed = {"lm_head.weight"} if kind is AutoModel else set()
    wrong = {
        name: sorted(map(str, keys))
        for name, keys in info.items()
        if name != "error_msgs" and set(map(str, keys)) - allowed
    }
    if wrong:
        raise AssertionError(f"loading says {wrong}")
    return model.eval()


def check(want, got, tokenizer):
    """The same tensors, bit for bit, and the same answer to a text."""
    want_state, got_state = want.state_dict(), got.state_dict()
    if want_state.keys() != got_state.keys():
        raise AssertionError(f"{sorted(want_state)} and {sorted(got_state)}")
    for name, tensor in want_state.items():
        other = got_state[name]
        if tensor.dtype != other.dtype or not torch.equal(tensor, other):
            raise AssertionError(f"{name} differs")
    ids = tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False)
    if ids["input_ids"].tolist() != [[WORDS.index(word) for word in TEXT.split()]]:
        raise AssertionError(f"the tokenizer gives {ids['input_ids'].tolist()}")
    with torch.no_grad():
        if not torch.equal(want(**ids)[0], got(**ids)[0]):
            raise AssertionError("the answers differ")
    return len(want_state)


def main(tenfold, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = []

    def run(*args):
        done = subprocess.run(
            [tenfold, *args, "--no-progress", "--no-sync"], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def row(what, compare):
        try:
            rows.append({"what": what, "count": compare()})
        except Exception:
            rows.append({"what": what, "error": traceback.format_exc(limit=3)})

    for kind, shard_size in [("one file", "1GB"), ("sharded", "40KB")]:
        base = folder / kind.replace(" ", "-")
        make(base, shard_size)
        sharded = (base / "model.safetensors.index.json").exists()
        if sharded != (kind == "sharded"):
            raise AssertionError(f"transformers wrote {sorted(os.listdir(base))}")

        def bf16():
            out = base.with_name(base.name + "-bf16")
            run("convert", base, out, "--cast", "bf16")
            # The configuration says the new type, so that nobody has to.
            said = AutoConfig.from_pretrained(out).dtype
            if said != torch.bfloat16:
                raise AssertionError(f"config.json says {said}")
            want = load(base).to(torch.bfloat16)
            got = load(out, dtype="auto")
            return check(want, got, AutoTokenizer.from_pretrained(out))

        def split():
            out = base.with_name(base.name + "-split")
            run("split", base, "-o", out, "--max-size", "20KB")
            return check(load(base), load(out), AutoTokenizer.from_pretrained(out))

        def renamed():
            # The names that the model without its head has.
            out = base.with_name(base.name + "-renamed")
            run("rename", base, "-o", out, "--rule", r"s/^model\.//")
            want, got = load(base, AutoModel), load(out, AutoModel)
            return check(want, got, AutoTokenizer.from_pretrained(out))

        def there_and_back():
            other = base.with_name(base.name + "-other")
            out = base.with_name(base.name + "-back")
            run("rename", base, "-o", other, "--rule", r"s/^model\./net./")
            run("rename", other, "-o", out, "--rule", r"s/^net\./model./")
            return check(load(base), load(out), AutoTokenizer.from_pretrained(out))

        def described():
            out = base.with_name(base.name + "-meta")
            run("meta", "set", base, "note=tiny", "-o", out)
            return check(load(base), load(out), AutoTokenizer.from_pretrained(out))

        row(f"{kind}: convert --cast bf16", bf16)
        row(f"{kind}: split --max-size 20KB", split)
        row(f"{kind}: rename, without model.", renamed)
        row(f"{kind}: rename and back", there_and_back)
        row(f"{kind}: meta set", described)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
