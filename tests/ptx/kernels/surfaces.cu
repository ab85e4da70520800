// Uses the surface functions of CUDA C++ for each geometry, element type and boundary mode. integers.cu explains how
// these kernels are tested.
#include <cuda_runtime.h>

struct Place {
  int x, y, z, layer;
};

template <class T, cudaSurfaceBoundaryMode mode>
__device__ void flat(T* out, cudaSurfaceObject_t s, const Place& p) {
  out[0] = surf1Dread<T>(s, p.x, mode);
  out[1] = surf2Dread<T>(s, p.x, p.y, mode);
  out[2] = surf1DLayeredread<T>(s, p.x, p.layer, mode);
  out[3] = surf2DLayeredread<T>(s, p.x, p.y, p.layer, mode);
  surf1Dwrite(out[4], s, p.x, mode);
  surf2Dwrite(out[5], s, p.x, p.y, mode);
  surf1DLayeredwrite(out[6], s, p.x, p.layer, mode);
  surf2DLayeredwrite(out[7], s, p.x, p.y, p.layer, mode);
}

template <class T, cudaSurfaceBoundaryMode mode>
__device__ void deep(T* out, cudaSurfaceObject_t s, const Place& p) {
  out[0] = surf3Dread<T>(s, p.x, p.y, p.z, mode);
  out[1] = surfCubemapread<T>(s, p.x, p.y, p.z, mode);
  out[2] = surfCubemapLayeredread<T>(s, p.x, p.y, p.layer, mode);
  surf3Dwrite(out[3], s, p.x, p.y, p.z, mode);
  surfCubemapwrite(out[4], s, p.x, p.y, p.z, mode);
  surfCubemapLayeredwrite(out[5], s, p.x, p.y, p.layer, mode);
}

template <class T>
__device__ void modes(void* memory, cudaSurfaceObject_t s, const Place& p) {
  T* const out = static_cast<T*>(memory);
  flat<T, cudaBoundaryModeTrap>(out, s, p), deep<T, cudaBoundaryModeTrap>(out, s, p);
  flat<T, cudaBoundaryModeClamp>(out, s, p), deep<T, cudaBoundaryModeClamp>(out, s, p);
  flat<T, cudaBoundaryModeZero>(out, s, p), deep<T, cudaBoundaryModeZero>(out, s, p);
}

// These instructions have no function in CUDA C++.
__device__ void in_assembly(unsigned* out, cudaSurfaceObject_t s, cudaTextureObject_t t, const Place& p) {
  asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%1, %2, %1, %2};" ::"l"(s), "r"(p.x), "r"(p.y));
  asm volatile("sured.b.add.2d.u32.clamp [%0, {%1, %2}], %1;" ::"l"(s), "r"(p.x), "r"(p.y));
  asm volatile("sured.b.min.1d.s64.zero [%0, {%1}], %2;" ::"l"(s), "r"(p.x), "l"(s));
  asm volatile("sured.p.max.1d.b32.trap [%0, {%1}], %2;" ::"l"(s), "r"(p.x), "r"(p.y));
  asm volatile("sured.b.or.3d.b32.trap [%0, {%1, %2, %1, %1}], %2;" ::"l"(s), "r"(p.x), "r"(p.y));
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(s));
  asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
  asm volatile("txq.level.width.b32 %0, [%1], 1;" : "=r"(out[2]) : "l"(t));
  asm volatile("txq.depth.b32 %0, [%1];" : "=r"(out[3]) : "l"(t));
  asm volatile("{.reg .pred p; istypep.surfref p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(out[4]) : "l"(s));
  asm volatile("{.reg .b32 a, b, c; tex.2d.v4.s32.s32 {%0, a, b, c}, [%1, {%2, %3}], {2, -3};}"
               : "=r"(out[5])
               : "l"(t), "r"(p.x), "r"(p.y));
  asm volatile("{.reg .b32 a; tex.2d.v2.f16x2.f32 {%0, a}, [%1, {0f3f800000, 0f40000000}];}" : "=r"(out[6]) : "l"(t));
}

__global__ void surfaces(void* out, const cudaSurfaceObject_t* s, cudaTextureObject_t t, Place p) {
  modes<char>(out, s[0], p), modes<uchar2>(out, s[1], p), modes<uchar4>(out, s[2], p);
  modes<short>(out, s[3], p), modes<ushort2>(out, s[4], p), modes<short4>(out, s[5], p);
  modes<int>(out, s[6], p), modes<uint2>(out, s[7], p), modes<int4>(out, s[8], p);
  modes<float>(out, s[9], p), modes<float2>(out, s[10], p), modes<float4>(out, s[11], p);
  modes<long long>(out, s[12], p), modes<ulonglong2>(out, s[13], p);
  in_assembly(static_cast<unsigned*>(out), s[14], t, p);
}
