"""CuPy with NVIDIA's libraries: random numbers, transforms, linear algebra, sparse matrices, sums and sorts."""
import cupy
import cupyx.scipy.sparse
import numpy
from show import exact, near, rounded

mine = numpy.random.RandomState(1)
values = mine.rand(500, 400)
for name in ("fft", "rfft", "fft2", "ifft"):
    near(name, getattr(cupy.fft, name)(cupy.asarray(values)), getattr(numpy.fft, name)(values), 1e-12)
near("plan of many", cupy.fft.fftn(cupy.asarray(values.reshape(20, 50, 200))), numpy.fft.fftn(values.reshape(20, 50, 200)), 1e-12)

a, b = mine.rand(80, 80) + 8 * numpy.eye(80), mine.rand(80, 3)
near("solve", cupy.linalg.solve(cupy.asarray(a), cupy.asarray(b)), numpy.linalg.solve(a, b), 1e-11)
near("svd", cupy.linalg.svd(cupy.asarray(a))[1], numpy.linalg.svd(a)[1], 1e-11)
near("eigenvalues", cupy.linalg.eigvalsh(cupy.asarray(a + a.T)), numpy.linalg.eigvalsh(a + a.T), 1e-11)
near("product", cupy.einsum("ij,jk,kl->il", *map(cupy.asarray, (a, a, b))), a @ a @ b, 1e-11)

for kind in (cupy.random.XORWOW, cupy.random.MRG32k3a, cupy.random.Philox4x3210):
    made = cupy.random.Generator(kind(7))
    exact(kind.__name__, made.random(10000))
    rounded(kind.__name__ + ", gamma", made.standard_gamma(3.0, 1000))
exact("permutation", cupy.random.RandomState(4).permutation(5000))

matrix = cupyx.scipy.sparse.random(300, 200, density=0.05, format="csr", random_state=5, dtype=cupy.float64)
near("sparse", matrix @ cupy.ones(200), cupy.asnumpy(matrix.toarray()).sum(1), 1e-12)
near("both sparse", (matrix @ matrix.T).toarray(), cupy.asnumpy(matrix.toarray()) @ cupy.asnumpy(matrix.toarray()).T, 1e-12)

near("cumulative", cupy.cumsum(cupy.asarray(values)), numpy.cumsum(values), 1e-12)
near("order", cupy.argsort(cupy.asarray(values[0])), numpy.argsort(values[0]), 0)
near("histogram", cupy.histogram(cupy.asarray(values), 20, (0, 1))[0], numpy.histogram(values, 20, (0, 1))[0], 0)
near("one axis", cupy.asarray(values).max(axis=1), values.max(axis=1), 0)
