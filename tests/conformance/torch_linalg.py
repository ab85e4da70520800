"""PyTorch's linear algebra: cuSOLVER, cuBLAS and what PyTorch adds, alone and by the batch, each against the processor."""
import torch
from show import near, rounded

made = torch.Generator().manual_seed(1)
for shape in ((96, 96), (10, 24, 24)):
    a = torch.randn(*shape, generator=made, dtype=torch.float64)
    definite = a @ a.mT + shape[-1] * torch.eye(shape[-1], dtype=torch.float64)
    b = torch.randn(*shape[:-1], 3, generator=made, dtype=torch.float64)
    ca, cd, cb = a.cuda(), definite.cuda(), b.cuda()
    near("solve", torch.linalg.solve(ca, cb), torch.linalg.solve(a, b), 1e-8)
    near("cholesky", torch.linalg.cholesky(cd), torch.linalg.cholesky(definite), 1e-12)
    near("inverse", torch.linalg.inv(cd) @ cd, torch.eye(shape[-1], dtype=torch.float64).expand(shape), 1e-10)
    near("determinant", torch.linalg.slogdet(cd)[1], torch.linalg.slogdet(definite)[1], 1e-10)
    near("eigenvalues", torch.linalg.eigvalsh(cd), torch.linalg.eigvalsh(definite), 1e-10)
    near("singular values", torch.linalg.svdvals(ca), torch.linalg.svdvals(a), 1e-10)
    q, r = torch.linalg.qr(ca)
    near("qr", q @ r, a, 1e-12)
    values, vectors = torch.linalg.eigh(cd)
    near("eigenvectors", cd @ vectors, vectors * values.unsqueeze(-2), 1e-10)
    u, s, v = torch.linalg.svd(ca)
    near("svd", u @ torch.diag_embed(s) @ v, a, 1e-11)
    near("least squares", torch.linalg.lstsq(ca[..., :12], cb).solution, torch.linalg.lstsq(a[..., :12], b).solution, 1e-8)
    factors, pivots = torch.linalg.lu_factor(ca)
    near("by its factors", torch.linalg.lu_solve(factors, pivots, cb), torch.linalg.solve(a, b), 1e-8)
a = torch.randn(64, 64, generator=made, dtype=torch.complex64)
near("complex", a.cuda() @ a.cuda(), a @ a, 1e-4)
rounded("exponential", torch.linalg.matrix_exp(a.cuda().real / 64))
try:
    torch.linalg.cholesky(-torch.eye(4, device="cuda"))
except torch.linalg.LinAlgError as error:
    print("not definite:", type(error).__name__)
