"""CuPy: kernels that NVRTC makes, cuBLAS, cuSOLVER, cuRAND, sorting, streams, pinned memory."""
import cupy
import numpy

numbers = cupy.arange(1 << 20, dtype=cupy.float32)
print("roots", float((cupy.sqrt(numbers) + 1).sum()))
matrix = cupy.asarray(numpy.random.RandomState(1).rand(256, 256))
print("product", round(float((matrix @ matrix).sum()), 6))
print("inverse", float(cupy.linalg.norm(cupy.linalg.inv(matrix) @ matrix - cupy.eye(256))) < 1e-6)

double_it = cupy.RawKernel(
    r"""extern "C" __global__ void double_it(float* p, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) p[i] *= 2;
    }""",
    "double_it",
)
double_it((4096,), (256,), (numbers, 1 << 20))
print("kernel", float(numbers[-1]))

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    in_order = cupy.sort(cupy.asarray(numpy.random.RandomState(2).rand(100000)))
stream.synchronize()
print("sorted", round(float(in_order[500]), 9))
print("pinned", cupy.cuda.alloc_pinned_memory(1 << 20).mem.size >= 1 << 20)
square = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "square")
print("squares", float(square(cupy.arange(5, dtype=cupy.float32)).sum()))
print("unique", int(cupy.unique(cupy.asarray([3, 1, 3, 2])).size))
print("random", float(cupy.random.RandomState(3).rand(100).sum()))
