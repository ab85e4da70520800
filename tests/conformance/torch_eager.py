"""PyTorch without its large libraries: copies from pinned memory, streams, events, sparse and random operations."""
import torch

host = torch.arange(1000, dtype=torch.float32).pin_memory()
device = host.to("cuda", non_blocking=True)
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    doubled = device * 2
stream.synchronize()
print("doubled", bool(torch.equal(doubled.cpu(), host * 2)))

event = torch.cuda.Event(enable_timing=True)
event.record()
event.synchronize()
print("event", event.query())

print("device", torch.cuda.get_device_name(), torch.cuda.device_count())
print("sparse", float(torch.sparse.mm(torch.eye(100, device="cuda").to_sparse(), torch.ones(100, 3, device="cuda")).sum()))
print("bessel", float(torch.special.i0(torch.ones(3, device="cuda")).sum()))
torch.cuda.manual_seed(1)
print("random", float(torch.rand(10, device="cuda").sum()))
image = torch.ones(1, 1, 8, 8, device="cuda")
print("bilinear", float(torch.nn.functional.interpolate(image, scale_factor=2, mode="bilinear").sum()))
print("in use", torch.cuda.memory_stats()["active.all.current"] > 0)
torch.cuda.empty_cache()
