"""CUDA graphs through PyTorch: a captured step that is replayed with new values, memory of its own, and a callable."""
import torch
from show import near

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).cuda()
data = torch.zeros(32, 64, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        model(data)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    out = model(data)
for turn in range(3):
    data.copy_(torch.randn(32, 64, generator=torch.Generator().manual_seed(turn)))
    graph.replay()
    with torch.no_grad():
        near(f"replay {turn}", out, model(data), 1e-5)
given = torch.randn(32, 64, device="cuda", generator=torch.Generator("cuda").manual_seed(5))
right = model(given).detach()
again = torch.cuda.make_graphed_callables(model, (torch.randn(32, 64, device="cuda"),))
near("callable", again(given), right, 1e-5)
