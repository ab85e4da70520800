"""PyTorch's allocator: what it counts, what it gives back, running out and going on, pools; with and without segments that
grow (PYTORCH_CUDA_ALLOC_CONF). The counts are the allocator's own, so they are the same on every GPU; what the GPU has in
all is not printed."""
import gc
import os

import torch

mib = 1 << 20
print("configuration", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "none"))


def counts(name):
    print(name, torch.cuda.memory_allocated() // mib, "MiB in use,", torch.cuda.memory_reserved() // mib, "MiB held")


blocks = [torch.full((size * mib,), 7, dtype=torch.uint8, device="cuda") for size in (1, 3, 10, 50, 200)]
counts("taken")
del blocks[1], blocks[2]
counts("some freed")
again = torch.zeros(40 * mib, dtype=torch.uint8, device="cuda")
counts("taken again")
del again
torch.cuda.empty_cache()
counts("cache emptied")
assert all(bool((block == 7).all()) for block in blocks)

free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
# Segments that grow are made of thousands of small objects until the GPU is full, which takes minutes. So they get a part
# of it.
share = total
if "expandable" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
    share = 8192 * mib
    torch.cuda.set_per_process_memory_fraction(share / total)
try:
    torch.empty(2 * total, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print("out of memory:", type(error).__name__, "CUDA out of memory" in str(error))
counts("after it")

# All there is, in pieces, until there is none; then everything goes on.
piece, taken = share // 16, []
try:
    while len(taken) < 20:
        taken.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    print("full:", len(taken) >= 8)
taken.clear()
gc.collect()
torch.cuda.empty_cache()
counts("given back")
values = torch.arange(1000, device="cuda")
print("sum", int(values.sum()))

torch.cuda.reset_peak_memory_stats()
peak = torch.zeros(300 * mib, dtype=torch.uint8, device="cuda")
del peak
print("peak grew", torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated() >= 300 * mib)
stats = torch.cuda.memory_stats()
print("retries", stats["num_alloc_retries"] > 0, "out of memory", stats["num_ooms"])
print("snapshot", sum(segment["total_size"] for segment in torch.cuda.memory_snapshot()) == torch.cuda.memory_reserved())

# Small pieces that grow: what is held stays near what is in use where segments grow.
growing = []
for step in range(1, 40):
    growing.append(torch.ones(step * mib, dtype=torch.uint8, device="cuda"))
print("growing", sum(int(block[-1]) for block in growing))
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    lent = torch.ones(5 * mib, dtype=torch.uint8, device="cuda")
lent.record_stream(torch.cuda.current_stream())
torch.cuda.current_stream().wait_stream(side)
print("lent", int(lent.sum(dtype=torch.int64)) == 5 * mib)
