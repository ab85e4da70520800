// Uses each integer and conversion intrinsic of CUDA's headers. The kernels are compiled for every architecture and
// loaded, but not run. The test finds opcodes that nvcc emits and the simulated GPU does not support; other tests check
// the results of opcodes.
#define USE(expression) out[next++] = static_cast<long long>(expression)

__device__ void bits(long long* out, int x, unsigned y, long long z) {
  int next = 0;
  const auto w = static_cast<unsigned long long>(z);
  USE(__popc(y)), USE(__clz(x)), USE(__brev(y)), USE(__ffs(x));
  USE(__popcll(w)), USE(__clzll(z)), USE(__ffsll(z)), USE(__brevll(w));
  USE(__byte_perm(y, y, 0x3210 + y)), USE(__fns(y, 3, 2));
  USE(__funnelshift_l(y, x, y)), USE(__funnelshift_lc(y, x, y));
  USE(__funnelshift_r(y, x, y)), USE(__funnelshift_rc(y, x, y));
  USE(y / 7), USE(y % out[0]), USE(x / static_cast<int>(out[1])), USE(z % out[2]), USE(w / (w - 5));
}

__device__ void products(long long* out, int x, unsigned y, long long z) {
  int next = 0;
  const auto w = static_cast<unsigned long long>(z);
  USE(__umulhi(y, y)), USE(__mulhi(x, x)), USE(__mul64hi(z, z)), USE(__umul64hi(w, w));
  USE(__umul24(y, y)), USE(__mul24(x, x)), USE(__sad(x, x, y)), USE(__usad(y, y, y));
  USE(__hadd(x, x)), USE(__rhadd(x, x)), USE(__uhadd(y, y)), USE(__urhadd(y, y));
  USE(__dp4a(x, x, x)), USE(__dp4a(y, y, y)), USE(__dp2a_lo(x, x, x)), USE(__dp2a_hi(y, y, y));
  const unsigned __int128 wide = static_cast<unsigned __int128>(w) * w + y;
  USE(wide / 7), USE(wide >> 71);
}

// Operations on two and four numbers in a word.
__device__ void vectors(long long* out, unsigned x, unsigned y) {
  int next = 0;
  USE(__vadd2(x, y)), USE(__vsub4(x, y)), USE(__vneg2(x)), USE(__vabs4(x)), USE(__vnegss4(x)), USE(__vabsss2(x));
  USE(__vabsdiffu4(x, y)), USE(__vabsdiffs2(x, y)), USE(__vsadu4(x, y)), USE(__vsads2(x, y));
  USE(__vmaxu4(x, y)), USE(__vminu4(x, y)), USE(__vmaxs2(x, y)), USE(__vmins2(x, y));
  USE(__vavgu4(x, y)), USE(__vhaddu4(x, y)), USE(__vaddus4(x, y)), USE(__vsubss2(x, y));
  USE(__vcmpeq4(x, y)), USE(__vcmpltu4(x, y)), USE(__vseteq4(x, y)), USE(__vsetgtu2(x, y));
  USE(__vimax3_s16x2(x, y, 5)), USE(__viaddmax_s16x2_relu(x, y, 5)), USE(__viaddmin_u16x2(x, y, 3));
  USE(__vimin_s16x2_relu(x, y)), USE(__vimin3_u32(x, y, 4)), USE(__vimax_s32_relu(static_cast<int>(x), 3));
  USE(__vimax3_s32(static_cast<int>(x), 2, 4)), USE(__viaddmax_s32(static_cast<int>(x), 2, 7));
  bool low = false, high = false;
  USE(__vibmin_u16x2(x, y, &low, &high)), USE(low), USE(high);
}

__device__ void conversions(long long* out, float f, double d) {
  int next = 0;
  USE(__float_as_int(f)), USE(__double_as_longlong(d)), USE(__double2hiint(d)), USE(__double2loint(d));
  USE(__float2int_rn(f)), USE(__float2int_ru(f)), USE(__float2uint_rz(f)), USE(__float2ll_rd(f)),
      USE(__float2ull_rn(f));
  USE(__double2int_rz(d)), USE(__double2uint_rn(d)), USE(__double2ll_rd(d)), USE(__double2ull_ru(d));
  USE(static_cast<short>(f)), USE(static_cast<unsigned char>(f)), USE(static_cast<signed char>(d));
}

extern "C" __global__ void integers(long long* out, const long long* in, const float* f, const double* d) {
  const int i = static_cast<int>(threadIdx.x);
  bits(out, i, static_cast<unsigned>(in[0]), in[1]);
  products(out + 100, i, static_cast<unsigned>(in[2]), in[3]);
  vectors(out + 200, static_cast<unsigned>(in[4]), static_cast<unsigned>(in[5]));
  conversions(out + 300, f[i], d[i]);
}
