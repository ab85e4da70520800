"""A kernel that Triton makes at run time."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


values = torch.arange(10000, device="cuda", dtype=torch.float32)
total = torch.empty_like(values)
add[(10,)](values, values, total, 10000, block=1024)
print("sum", float(total.sum()))
