// Uses each function and intrinsic for singles, doubles, halves, brain floats and 8-bit floats. integers.cu explains
// how these kernels are tested.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define USE(expression) out[next++] = static_cast<float>(expression)

__device__ void singles(float* out, float x, float y, int i) {
  int next = 0;
  USE(__fadd_rz(x, y)), USE(__fmul_ru(x, y)), USE(__fmaf_rd(x, y, x)), USE(__fdiv_rn(x, y)), USE(__fdividef(x, y));
  USE(__frcp_rz(x)), USE(__fsqrt_ru(x)), USE(__frsqrt_rn(x)), USE(__saturatef(x)), USE(__sinf(x)), USE(__tanf(x));
  USE(__expf(x)), USE(__exp10f(x)), USE(__log2f(x)), USE(__log10f(x)), USE(__powf(x, y)), USE(__int2float_rz(i));
  USE(sinf(x)), USE(tanf(x)), USE(expf(x)), USE(logf(x)), USE(powf(x, y)), USE(cbrtf(x)), USE(erff(x)), USE(tgammaf(x));
  USE(lgammaf(x)), USE(atan2f(x, y)), USE(fmodf(x, y)), USE(remainderf(x, y)), USE(ldexpf(x, i)), USE(hypotf(x, y));
  USE(acoshf(x)), USE(tanhf(x)), USE(nextafterf(x, y)), USE(copysignf(x, y)), USE(rintf(x)), USE(roundf(x)),
      USE(sinpif(x));
  USE(fmaxf(fmaxf(x, y), out[50])), USE(fminf(fminf(x, y), out[51])), USE(llroundf(x)), USE(ilogbf(x)), USE(isnan(x));
}

__device__ void doubles(float* out, double x, double y, int i) {
  int next = 0;
  USE(__dadd_rz(x, y)), USE(__dmul_ru(x, y)), USE(__fma_rd(x, y, x)), USE(__ddiv_rz(x, y)), USE(__dsqrt_ru(x));
  USE(sin(x)), USE(tan(x)), USE(exp(x)), USE(log(x)), USE(pow(x, y)), USE(cbrt(x)), USE(erf(x)), USE(tgamma(x));
  USE(atan2(x, y)), USE(fmod(x, y)), USE(remainder(x, y)), USE(rsqrt(x)), USE(hypot(x, y)), USE(rint(x)), USE(round(x));
  USE(ldexp(x, i)), USE(nextafter(x, y)), USE(__ll2double_rz(i)), USE(__ull2double_ru(i)), USE(__hiloint2double(i, 3));
}

template <class T>
__device__ void narrow(float* out, T x, T y) {
  int next = 0;
  USE(__hadd(x, y)), USE(__hsub(x, y)), USE(__hmul(x, y)), USE(__hfma(x, y, x)), USE(__hdiv(x, y)),
      USE(__hfma_sat(x, y, x));
  USE(__hfma_relu(x, y, x)), USE(__hmax(x, y)), USE(__hmin_nan(x, y)), USE(__hneg(__habs(x)));
  USE(hexp2(x)), USE(hlog(x)), USE(hsin(x)), USE(hcos(x)), USE(hsqrt(x)), USE(hrcp(x)), USE(htanh(x)), USE(hrint(x));
  USE(hfloor(x)), USE(__heq(x, y)), USE(__hgtu(x, y)), USE(__hisnan(x)), USE(__hisinf(x));
}

template <class T>
__device__ void pairs(float* out, T x, T y) {
  int next = 0;
  const auto use = [&](T value) { USE(__low2float(value)), USE(__high2float(value)); };
  use(__hadd2(x, y)), use(__hmul2_sat(x, y)), use(__hfma2(x, y, x)), use(__hfma2_relu(x, y, x)), use(__h2div(x, y));
  use(__hmax2(x, y)), use(__hmin2_nan(x, y)), use(__hneg2(__habs2(x))), use(__heq2(x, y)), use(__hgtu2(x, y));
  use(h2exp2(x)), use(h2sqrt(x)), use(h2tanh(x));
  USE(__hbeq2(x, y)), USE(__hblt2(x, y)), USE(__hne2_mask(x, y)), USE(__hltu2_mask(x, y));
}

__device__ void half_conversions(float* out, __half x, float f, double d, int i) {
  int next = 0;
  USE(__half2int_rn(x)), USE(__half2uint_rz(x)), USE(__half2short_rd(x)), USE(__half2ll_ru(x)), USE(__half2char_rz(x));
  USE(__float2half_rz(f)), USE(__float2half_ru(f)), USE(__int2half_rn(i)), USE(__ull2half_rz(i)), USE(__double2half(d));
  USE(__low2float(__float22half2_rn(make_float2(f, f)))), USE(htanh_approx(x));
}

__device__ void bytes(float* out, __nv_fp8_e4m3* a, __nv_fp8_e5m2* b, float f) {
  int next = 0;
  USE(a[0]), USE(b[0]);
  a[1] = __nv_fp8_e4m3(f);
  b[1] = __nv_fp8_e5m2(f);
  a[2] = __nv_fp8_e4m3(__half(a[3]));
  reinterpret_cast<__nv_fp8x2_e4m3*>(a)[4] = __nv_fp8x2_e4m3(make_float2(f, f));
  reinterpret_cast<__nv_fp8x4_e5m2*>(b)[4] = __nv_fp8x4_e5m2(make_float4(f, f, f, f));
}

extern "C" __global__ void floats(float* out, const float* f, const double* d, __half2* h, __nv_bfloat162* b,
                                  void* fp8) {
  const int i = static_cast<int>(threadIdx.x);
  singles(out, f[i], f[i + 1], i);
  doubles(out + 100, d[i], d[i + 1], i);
  narrow(out + 200, h[i].x, h[i].y);
  pairs(out + 300, h[i], h[i + 1]);
  half_conversions(out + 400, h[i].x, f[i], d[i], i);
  bytes(out + 500, static_cast<__nv_fp8_e4m3*>(fp8), static_cast<__nv_fp8_e5m2*>(fp8) + 64, f[i]);
  atomicAdd(h + 40, h[i]);
  atomicAdd(&h[50].x, h[i].y);
#if __CUDA_ARCH__ >= 1000
  float2* const two = reinterpret_cast<float2*>(out + 900);
  two[0] = __ffma2_rn(two[1], two[2], two[3]);
  two[4] = __fmul2_ru(two[5], __fadd2_rz(two[6], two[7]));
#endif
#if __CUDA_ARCH__ >= 800
  narrow(out + 600, b[i].x, b[i].y);
  pairs(out + 700, b[i], b[i + 1]);
  out[800] = static_cast<float>(__bfloat162int_rn(b[i].x)) + __bfloat162float(__float2bfloat16_rz(f[i]));
  atomicAdd(b + 40, b[i]);
  atomicAdd(&b[50].x, b[i].y);
#endif
}
