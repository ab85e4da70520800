"""CuPy's textures and surfaces: arrays of one to three dimensions, filters, borders, coordinates of both kinds."""
import cupy
import numpy
from cupy.cuda import runtime, texture
from show import exact, near

code = r"""
extern "C" __global__ void sample(cudaTextureObject_t t, float* out, int w, int h, float step) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = tex2D<float>(t, x * step + 0.5f, y * step + 0.5f);
}
extern "C" __global__ void sample3(cudaTextureObject_t t, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex3D<float>(t, i % 4 + 0.5f, i / 4 % 4 + 0.5f, i / 16 + 0.5f);
}
extern "C" __global__ void line(cudaTextureObject_t t, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(t, i);
}
extern "C" __global__ void draw(cudaSurfaceObject_t s, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) surf2Dwrite<float>(x + 100.0f * y, s, x * 4, y);
}
"""
module = cupy.RawModule(code=code, backend="nvrtc")
single = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
border, clamp = runtime.cudaAddressModeBorder, runtime.cudaAddressModeClamp
point, linear = runtime.cudaFilterModePoint, runtime.cudaFilterModeLinear


def array_of(values, flags=0):
    made = texture.CUDAarray(single, *values.shape[::-1], flags=flags)
    made.copy_from(values)
    return made


def texture_of(resource, address, way):
    return texture.TextureObject(resource, texture.TextureDescriptor((address,) * 3, way, runtime.cudaReadModeElementType))


picture = numpy.random.RandomState(1).randint(0, 100, (48, 64)).astype(numpy.float32)
array = array_of(picture)
for name, address, way, step in (("points", clamp, point, 1.0), ("between", clamp, linear, 0.5), ("border", border, linear, 2.0)):
    out = cupy.zeros((48, 64), dtype=cupy.float32)
    seen = texture_of(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array), address, way)
    module.get_function("sample")((4, 3), (16, 16), (seen, out, 64, 48, cupy.float32(step)))
    if name == "points":
        near(name, out, picture, 0)
    exact(name, out)

block = numpy.arange(64, dtype=numpy.float32).reshape(4, 4, 4)
out = cupy.zeros(64, dtype=cupy.float32)
seen = texture_of(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array_of(block)), clamp, point)
module.get_function("sample3")((1,), (64,), (seen, out, 64))
near("three dimensions", out, block.ravel(), 0)

data = cupy.arange(64, dtype=cupy.float32)
seen = texture_of(texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=data, chDesc=single, sizeInBytes=256), clamp, point)
module.get_function("line")((1,), (64,), (seen, out, 64))
near("line", out, data, 0)

drawn = array_of(numpy.zeros((16, 32), numpy.float32), flags=runtime.cudaArraySurfaceLoadStore)
surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=drawn))
module.get_function("draw")((2, 1), (16, 16), (surface, 32, 16))
host = numpy.zeros((16, 32), numpy.float32)
drawn.copy_to(host)
near("surface", host, numpy.arange(32) + 100.0 * numpy.arange(16)[:, None], 0)
