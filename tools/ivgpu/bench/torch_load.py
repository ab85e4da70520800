"""A load of `ivgpu bench share` that PyTorch makes: python3 torch_load.py KIND SECONDS, as the measuring program's `load`.

train: steps of a small transformer, each waited for.   infer: its forward pass, and a wait, every 10 ms.
full: large products, of which eight are queued at a time, counted each.
generate: a forward pass of a GPT-2 of `transformers` (12 layers, random weights) over 512 tokens, and a wait, every 50 ms.

Says "ready", then for each line that arrives does that for so many seconds and tells how often a second, and of one time
its mean, median and 99th percentile in microseconds.
"""
import sys
import time

import torch

kind, seconds = sys.argv[1], float(sys.argv[2])
torch.manual_seed(1)


def block():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 512, dropout=0.0, batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()


def train():
    model, words = block(), torch.randn(16, 64, 256).cuda()
    steps = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def once():
        steps.zero_grad(set_to_none=True)
        loss = (model(words) - words).square().mean()
        loss.backward()
        steps.step()
        loss.item()

    return once, 1, 0


def infer():
    model, words = block().eval(), torch.randn(1, 64, 256).cuda()

    @torch.no_grad()
    def once():
        model(words).sum().item()

    return once, 1, 0.01


def generate():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).eval().cuda()
    words = torch.randint(0, 50257, (4, 512)).cuda()

    @torch.no_grad()
    def once():
        model(words).logits[:, -1].argmax(-1).cpu()

    return once, 1, 0.05


def full():
    a = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    b, c = a.clone(), torch.empty_like(a)
    queued = []

    def once():
        for _ in range(4):
            torch.mm(a, b, out=c)
        done = torch.cuda.Event()
        done.record()
        queued.append(done)
        if len(queued) > 1:
            queued.pop(0).synchronize()

    return once, 4, 0


def run(once, parts, every):
    times = []
    begin = time.perf_counter()
    due = begin
    while (start := time.perf_counter()) < begin + seconds:
        if start < due:
            time.sleep(due - start)
        due += every
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    rate = len(times) * parts / (time.perf_counter() - begin)
    times.sort()
    mean, p50, p99 = sum(times) / len(times), times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"samples {kind} 0 {rate:.6g} {mean * 1e6:.6g} {p50 * 1e6:.6g} {p99 * 1e6:.6g}", flush=True)


load = {"train": train, "infer": infer, "full": full, "generate": generate}[kind]()
for _ in range(30):
    load[0]()
print("ready", flush=True)
for _ in sys.stdin:
    run(*load)
