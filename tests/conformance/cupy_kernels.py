"""CuPy's kernels: RawKernel and RawModule with templates, constants and shared memory, fused functions, streams, events."""
import cupy
import numpy
from show import exact, near

code = r"""
__constant__ float factor[4];
template <class T> __global__ void scale(T* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * T(factor[i % 4]);
}
extern "C" __global__ void turn(const int* in, int* out, int n) {
  extern __shared__ int part[];
  part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}
"""
module = cupy.RawModule(code=code, options=("--std=c++17",), name_expressions=("scale<float>", "scale<double>"))
scale = {name: module.get_function(f"scale<{name}>") for name in ("float", "double")}
factor = cupy.ndarray((4,), cupy.float32, module.get_global("factor"))
factor[...] = cupy.asarray([1, 2, 3, 4], dtype=cupy.float32)
for name in scale:
    values = cupy.ones(1000, dtype=numpy.dtype(name.replace("float", "float32").replace("double", "float64")))
    scale[name]((4,), (256,), (values, 1000))
    exact(name, values)
numbers = cupy.arange(4096, dtype=cupy.int32)
turned = cupy.empty_like(numbers)
module.get_function("turn")((16,), (256,), (numbers, turned, 4096), shared_mem=1024)
near("turned", turned, numpy.arange(4096).reshape(16, 256)[:, ::-1].ravel(), 0)

native = cupy.RawKernel('extern "C" __global__ void half_it(float* p) { p[threadIdx.x] /= 2; }', "half_it", backend="nvrtc")
data = cupy.ones(64, dtype=cupy.float32)
native((1,), (64,), (data,))
print("registers", native.num_regs > 0, "threads", native.max_threads_per_block >= 64, float(data.sum()))


@cupy.fuse()
def fused(a, b):
    return cupy.sqrt(a * a + b * b)


near("fused", fused(cupy.full(100, 3.0), cupy.full(100, 4.0)), numpy.full(100, 5.0), 1e-12)
start, end = cupy.cuda.Event(), cupy.cuda.Event()
with cupy.cuda.Stream(non_blocking=True) as stream:
    start.record(stream)
    total = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")(cupy.arange(1000, dtype=cupy.float64))
    end.record(stream)
    end.synchronize()
print("squares", float(total), "time", cupy.cuda.get_elapsed_time(start, end) >= 0)
