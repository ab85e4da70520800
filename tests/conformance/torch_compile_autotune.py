"""torch.compile in the mode that tries several kernels of each product and takes the fastest, without graphs."""
import torch
from show import near

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False


def layer(x, weight, bias):
    return torch.relu(x @ weight + bias)


def attention(query, key):
    return torch.softmax(query @ key.transpose(1, 2) / 8, dim=-1)


autotuned = {"mode": "max-autotune-no-cudagraphs"}
x, weight = torch.randn(256, 512, device="cuda"), torch.randn(512, 384, device="cuda")
bias = torch.randn(384, device="cuda")
right = layer(x, weight, bias)
made = torch.compile(layer, **autotuned)
for turn in range(3):
    near(f"a layer, turn {turn}", made(x, weight, bias), right, 1e-4)
half = [values.half() for values in (x / 16, weight, bias)]
near("a layer in halves", torch.compile(layer, **autotuned)(*half).float(), layer(*half).float(), 1e-2)

query, key = (torch.randn(4, 128, 64, device="cuda") for _ in range(2))
near("attention's weights", torch.compile(attention, **autotuned)(query, key), attention(query, key), 1e-4)

parameters = [weight.requires_grad_(), bias.requires_grad_()]
expected = torch.autograd.grad(layer(x, *parameters).square().mean(), parameters)
got = torch.autograd.grad(made(x, *parameters).square().mean(), parameters)
for name, slope, right in zip(("weight", "bias"), got, expected):
    near(f"the slope of the {name}", slope, right, 1e-3)
