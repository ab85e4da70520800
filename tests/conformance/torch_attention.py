"""PyTorch's attention, each way that this GPU has: against its definition, forward and backward."""
import torch
from show import near
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)
made = torch.Generator().manual_seed(1)
heads = [torch.randn(2, 4, 128, 64, generator=made) for _ in range(3)]


def by_definition(q, k, v, causal):
    weights = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        weights = weights.masked_fill(torch.ones(128, 128).triu(1).bool(), float("-inf"))
    return weights.softmax(-1) @ v


for way in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
    for causal in (False, True):
        q, k, v = (part.to("cuda", torch.bfloat16).requires_grad_() for part in heads)
        name = f"{way.name}{', causal' if causal else ''}"
        try:
            with sdpa_kernel(way):
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        except RuntimeError as error:
            print(name, "is refused:", str(error).splitlines()[0][:80])
            continue
        near(name, out.float(), by_definition(*heads, causal), 0.03)
        out.float().sum().backward()
        mine = [part.clone().requires_grad_() for part in heads]
        by_definition(*mine, causal).sum().backward()
        near(name + ", gradient", v.grad.float(), mine[2].grad, 0.03)
