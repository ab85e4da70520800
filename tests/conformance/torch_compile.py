"""torch.compile: a function, a model with its gradient, sizes that change."""
import torch
from show import near

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False


def plain(x, y):
    return torch.softmax(torch.sin(x) @ y + 1, dim=-1).sum(0) * x.mean()


x, y = torch.randn(64, 128, device="cuda"), torch.randn(128, 96, device="cuda")
near("a function", torch.compile(plain)(x, y), plain(x, y), 1e-4)
growing = torch.compile(lambda values: (values * 2 + 1).relu().sum(), dynamic=True)
print("sizes", [round(float(growing(torch.ones(n, device="cuda"))), 1) for n in (5, 50, 500)])

model = torch.nn.Sequential(torch.nn.Linear(128, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).cuda()
model(x).square().mean().backward()
right = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
made = torch.compile(model)
made(x).square().mean().backward()
for i, (p, grad) in enumerate(zip(model.parameters(), right)):
    near(f"gradient {i}", p.grad, grad, 1e-3)
