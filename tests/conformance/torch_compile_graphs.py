"""torch.compile in the mode that captures graphs."""
import torch
from show import near

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False


def plain(x, y):
    return torch.softmax(torch.sin(x) @ y + 1, dim=-1).sum(0) * x.mean()


x, y = torch.randn(64, 128, device="cuda"), torch.randn(128, 96, device="cuda")
graphs = torch.compile(plain, mode="reduce-overhead")
for _ in range(4):
    torch.compiler.cudagraph_mark_step_begin()
    out = graphs(x, y).clone()
near("graphs", out, plain(x, y), 1e-4)
