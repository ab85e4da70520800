"""PyTorch with cuBLAS, cuDNN and cuSOLVER. Where an algorithm is chosen by its time, only shapes are printed."""
import torch

torch.manual_seed(1)


def random(*shape, dtype=torch.float32, **options):
    return torch.randn(*shape, device="cuda", dtype=dtype, **options)


for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    product = random(1024, 1024, dtype=dtype) @ random(1024, 1024, dtype=dtype)
    batch = torch.bmm(random(8, 64, 96, dtype=dtype), random(8, 96, 32, dtype=dtype))
    print("matmul", dtype, float(product.double().abs().sum()), float(batch.double().abs().sum()))

torch.backends.cudnn.benchmark = True
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    images = random(8, 32, 64, 64, dtype=dtype, requires_grad=True)
    weights = random(64, 32, 3, 3, dtype=dtype, requires_grad=True)
    result = torch.nn.functional.conv2d(images, weights, padding=1)
    result.float().square().mean().backward()
    print("convolution", dtype, tuple(result.shape), bool(torch.isfinite(images.grad).all()))

lstm = torch.nn.LSTM(64, 128, 2).to("cuda")
print("lstm", tuple(lstm(random(20, 8, 64))[0].shape))
matrix = random(256, 256, dtype=torch.float64)
q, r = torch.linalg.qr(matrix)
print("qr", float((q @ r - matrix).abs().max()) < 1e-9)
print("svd", float(torch.linalg.svdvals(matrix)[0]) > 0)
heads = random(2, 4, 128, 64, dtype=torch.float16)
print("attention", tuple(torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).shape))
torch.cuda.synchronize()
