"""PyTorch, mixed precision: steps under autocast in half with a scaler, and in bfloat16; which types come out."""
import torch
from show import rounded

for dtype in (torch.float16, torch.bfloat16):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.LayerNorm(512), torch.nn.SiLU(), torch.nn.Linear(512, 16)).cuda()
    data = torch.randn(64, 256, generator=torch.Generator().manual_seed(2)).cuda()
    kinds = (torch.arange(64) % 16).cuda()
    steps = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    losses = []
    for _ in range(15):
        steps.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            said = model(data)
            loss = torch.nn.functional.cross_entropy(said, kinds)
        scaler.scale(loss).backward()
        scaler.step(steps)
        scaler.update()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    print(dtype, said.dtype, loss.dtype, "scale", scaler.get_scale(), [f"{value:.1f}" for value in losses[:4]])

# A number too large for half: the step is left out and the scale is halved.
weight = torch.nn.Parameter(torch.ones(4, device="cuda"))
steps = torch.optim.SGD([weight], lr=1.0)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
scaler.scale((weight * float("inf")).sum()).backward()
scaler.step(steps)
scaler.update()
print("scale", scaler.get_scale(), "weight", weight.tolist())
eight = torch.arange(16, device="cuda", dtype=torch.float32).div(4).to(torch.float8_e4m3fn)
rounded("eight bits", eight.float())
