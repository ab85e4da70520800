// Uses the texture functions of CUDA C++ for each geometry and element type. integers.cu explains how these kernels are
// tested.
#include <cuda_runtime.h>

#define USE(expression) out[next++] = (expression)

struct Place {
  float x, y, z, level;
  int layer, number;
};

template <class T>
__device__ void one_dimension(T* out, cudaTextureObject_t t, const Place& p) {
  int next = 0;
  USE(tex1Dfetch<T>(t, p.number)), USE(tex1D<T>(t, p.x)), USE(tex1DLod<T>(t, p.x, p.level));
  USE(tex1DGrad<T>(t, p.x, p.y, p.z)), USE(tex1DLayered<T>(t, p.x, p.layer));
  USE(tex1DLayeredLod<T>(t, p.x, p.layer, p.level)), USE(tex1DLayeredGrad<T>(t, p.x, p.layer, p.y, p.z));
}

template <class T>
__device__ void two_dimensions(T* out, cudaTextureObject_t t, const Place& p) {
  int next = 0;
  const float2 dx = make_float2(p.x, p.z), dy = make_float2(p.y, p.x);
  USE(tex2D<T>(t, p.x, p.y)), USE(tex2DLod<T>(t, p.x, p.y, p.level)), USE(tex2DGrad<T>(t, p.x, p.y, dx, dy));
  USE(tex2DLayered<T>(t, p.x, p.y, p.layer)), USE(tex2DLayeredLod<T>(t, p.x, p.y, p.layer, p.level));
  USE(tex2DLayeredGrad<T>(t, p.x, p.y, p.layer, dx, dy));
}

template <class T>
__device__ void more_dimensions(T* out, cudaTextureObject_t t, const Place& p) {
  int next = 0;
  const float4 dx = make_float4(p.x, p.z, p.y, 0), dy = make_float4(p.y, p.x, p.z, 0);
  USE(tex3D<T>(t, p.x, p.y, p.z)), USE(tex3DLod<T>(t, p.x, p.y, p.z, p.level));
  USE(tex3DGrad<T>(t, p.x, p.y, p.z, dx, dy));
  USE(texCubemap<T>(t, p.x, p.y, p.z)), USE(texCubemapLod<T>(t, p.x, p.y, p.z, p.level));
  USE(texCubemapGrad<T>(t, p.x, p.y, p.z, dx, dy));
  USE(texCubemapLayered<T>(t, p.x, p.y, p.z, p.layer));
  USE(texCubemapLayeredLod<T>(t, p.x, p.y, p.z, p.layer, p.level));
  USE(texCubemapLayeredGrad<T>(t, p.x, p.y, p.z, p.layer, dx, dy));
}

template <class T>
__device__ void gathered(T* out, cudaTextureObject_t t, const Place& p) {
  int next = 0;
  USE(tex2Dgather<T>(t, p.x, p.y, 0)), USE(tex2Dgather<T>(t, p.x, p.y, 1));
  USE(tex2Dgather<T>(t, p.x, p.y, 2)), USE(tex2Dgather<T>(t, p.x, p.y, 3));
}

template <class T>
__device__ void resident(T* out, bool* there, cudaTextureObject_t t, const Place& p) {
  int next = 0;
  USE(tex2D<T>(t, p.x, p.y, there)), USE(tex2DLod<T>(t, p.x, p.y, p.level, there + 1));
  USE(tex3D<T>(t, p.x, p.y, p.z, there + 2)), USE(tex2Dgather<T>(t, p.x, p.y, there + 3, 1));
  USE(tex2DGrad<T>(t, p.x, p.y, make_float2(p.x, p.y), make_float2(p.y, p.x), there + 4));
  USE(tex2DLayered<T>(t, p.x, p.y, p.layer, there + 5)), USE(texCubemap<T>(t, p.x, p.y, p.z));
}

template <class T>
__device__ void all(void* memory, cudaTextureObject_t t, const Place& p) {
  T* const out = static_cast<T*>(memory);
  one_dimension(out, t, p), two_dimensions(out + 10, t, p), more_dimensions(out + 20, t, p);
}

__global__ void textures(void* out, bool* there, const cudaTextureObject_t* t, Place p) {
  all<float>(out, t[0], p), all<float2>(out, t[1], p), all<float4>(out, t[2], p);
  all<int>(out, t[3], p), all<int4>(out, t[4], p), all<unsigned>(out, t[5], p), all<uint2>(out, t[6], p);
  all<char>(out, t[7], p), all<uchar4>(out, t[8], p), all<short2>(out, t[9], p), all<ushort4>(out, t[10], p);
  gathered(static_cast<float4*>(out), t[11], p), gathered(static_cast<int4*>(out), t[12], p);
  gathered(static_cast<uchar4*>(out), t[13], p), gathered(static_cast<ushort2*>(out), t[14], p);
  resident(static_cast<float4*>(out), there, t[15], p);
}
