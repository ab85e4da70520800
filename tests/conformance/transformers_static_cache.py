"""Transformers: small models with random weights that decode greedily, with a static cache and steps in graphs."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch._dynamo
from show import exact
from transformers import CompileConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

torch.backends.cuda.matmul.allow_tf32 = False
VOCABULARY, NEW = 256, 48
special = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
# Larger initial weights than by default: the tokens differ more from one another.
models = {
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(n_positions=128, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2, **special)
    ),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
            initializer_range=0.2,
            tie_word_embeddings=False,
            **special,
        )
    ),
}
# The end of a text is never chosen, so each text has the same length.
common = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW}


def decode(model, tokens, **options):
    with torch.no_grad():
        return model.generate(tokens, attention_mask=torch.ones_like(tokens), **common, **options)


for name, make in models.items():
    torch.manual_seed(7)
    model = make().eval().cuda()
    prompts = torch.randint(3, VOCABULARY, (3, 2, 8), generator=torch.Generator().manual_seed(8)).cuda()
    right = [decode(model, prompt, disable_compile=True) for prompt in prompts]
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for i, prompt in enumerate(prompts):
        got = decode(
            model, prompt, cache_implementation="static", compile_config=CompileConfig(mode="reduce-overhead")
        )
        assert got.shape == (2, 8 + NEW), got.shape
        assert torch.equal(got, right[i]), f"{name}, prompt {i}: {got.tolist()} is not {right[i].tolist()}"
        exact(f"{name}, tokens {i}", got)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > before, f"{name}: nothing was compiled"
