"""PyTorch's sparse tensors: coordinates, rows, blocks; products of them with cuSPARSE, and gradients."""
import torch
from show import near

made = torch.Generator().manual_seed(1)
dense = torch.randn(200, 150, generator=made, dtype=torch.float64)
dense[torch.rand(200, 150, generator=made) < 0.9] = 0
right = torch.randn(150, 20, generator=made, dtype=torch.float64)
coordinates, rows = dense.cuda().to_sparse_coo(), dense.cuda().to_sparse_csr()
print("entries", coordinates._nnz(), rows._nnz())
near("coordinates", torch.sparse.mm(coordinates, right.cuda()), dense @ right, 1e-12)
near("rows", rows @ right.cuda(), dense @ right, 1e-12)
near("a vector", rows @ right[:, 0].cuda(), dense @ right[:, 0], 1e-12)
near("both sparse", torch.sparse.mm(rows, dense.T.contiguous().cuda().to_sparse_csr()).to_dense(), dense @ dense.T, 1e-12)
near("sum", torch.sparse.sum(coordinates, dim=0).to_dense(), dense.sum(0), 1e-12)
near("sampled", torch.sparse.sampled_addmm(rows, dense[:, :8].cuda().contiguous(), torch.ones(8, 150, dtype=torch.float64, device="cuda"), beta=0.0).to_dense(),
     (dense[:, :8] @ torch.ones(8, 150, dtype=torch.float64)) * (dense != 0), 1e-12)
weights = dense.cuda().to_sparse_coo().requires_grad_()
torch.sparse.mm(weights, right.cuda()).square().sum().backward()
near("gradient", weights.grad.to_dense(), (2 * (dense @ right) @ right.T) * (dense != 0), 1e-10)
table = torch.nn.EmbeddingBag(50, 8, sparse=True, mode="sum").cuda()
table(torch.arange(60, device="cuda") % 50, torch.arange(0, 60, 6, device="cuda")).sum().backward()
near("embedding", table.weight.grad.coalesce().values().sum(), torch.tensor(60 * 8.0), 1e-6)
