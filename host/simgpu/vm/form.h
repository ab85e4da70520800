// The parsed suffixes of an opcode: types in order, and all other suffixes as words. For example, `add.rn.ftz.f32` has
// the type f32 and the words rn and ftz.
#pragma once

#include <array>
#include <bitset>
#include <string_view>

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/types.h"

namespace simgpu {

// Each entry has the name of the enumerator and the spelling in PTX.
// clang-format off
#define SIMGPU_WORDS(X)                                                                                                \
  X(rn, "rn") X(rz, "rz") X(rm, "rm") X(rp, "rp") X(rni, "rni") X(rzi, "rzi") X(rmi, "rmi") X(rpi, "rpi")              \
  X(rna, "rna") X(ftz, "ftz") X(sat, "sat") X(satfinite, "satfinite") X(approx, "approx") X(full, "full")              \
  X(nan, "NaN") X(xorsign, "xorsign") X(abs, "abs") X(relu, "relu")                                                    \
  X(lo, "lo") X(hi, "hi") X(wide, "wide") X(cc, "cc")                                                                  \
  X(eq, "eq") X(ne, "ne") X(lt, "lt") X(le, "le") X(gt, "gt") X(ge, "ge") X(ls, "ls") X(hs, "hs")                      \
  X(equ, "equ") X(neu, "neu") X(ltu, "ltu") X(leu, "leu") X(gtu, "gtu") X(geu, "geu") X(num, "num") X(isnan, "nan")    \
  X(and_, "and") X(or_, "or") X(xor_, "xor")                                                                           \
  X(global, "global") X(shared, "shared") X(local, "local") X(const_, "const") X(param, "param")                       \
  X(weak, "weak") X(relaxed, "relaxed") X(acquire, "acquire") X(release, "release") X(acq_rel, "acq_rel")              \
  X(volatile_, "volatile") X(sc, "sc") X(mmio, "mmio") X(cta, "cta") X(cluster, "cluster") X(gpu, "gpu")               \
  X(sys, "sys") X(gl, "gl")                                                                                            \
  X(ca, "ca") X(cg, "cg") X(cs, "cs") X(lu, "lu") X(cv, "cv") X(wb, "wb") X(wt, "wt") X(nc, "nc")                      \
  X(cache_hint, "cache hint") X(v2, "v2") X(v4, "v4") X(v8, "v8") X(to, "to") X(uni, "uni")                            \
  X(sync, "sync") X(aligned, "aligned") X(arrive, "arrive") X(wait, "wait") X(red, "red") X(popc, "popc")              \
  X(warp, "warp") X(up, "up") X(down, "down") X(bfly, "bfly") X(idx, "idx")                                            \
  X(all, "all") X(any, "any") X(ballot, "ballot")                                                                      \
  X(l, "l") X(r, "r") X(wrap, "wrap") X(clamp, "clamp") X(shiftamt, "shiftamt")                                        \
  X(f4e, "f4e") X(b4e, "b4e") X(rc8, "rc8") X(ecl, "ecl") X(ecr, "ecr") X(rc16, "rc16")                                \
  X(add, "add") X(min, "min") X(max, "max") X(inc, "inc") X(dec, "dec") X(exch, "exch") X(cas, "cas")                  \
  X(noftz, "noftz") X(finite, "finite") X(infinite, "infinite") X(number, "number") X(notanumber, "notanumber")        \
  X(normal, "normal") X(subnormal, "subnormal") X(proxy, "proxy") X(async, "async") X(alias, "alias")                  \
  X(mbarrier_init, "mbarrier_init") X(mbarrier, "mbarrier") X(init, "init") X(inval, "inval")                          \
  X(arrive_drop, "arrive_drop") X(expect_tx, "expect_tx") X(complete_tx, "complete_tx")                                \
  X(test_wait, "test_wait") X(try_wait, "try_wait") X(parity, "parity") X(pending_count, "pending_count")              \
  X(noComplete, "noComplete") X(commit_group, "commit_group") X(wait_group, "wait_group")                              \
  X(wait_all, "wait_all") X(noinc, "noinc") X(bulk, "bulk") X(bulk_group, "bulk_group") X(read, "read")                \
  X(launch_dependents, "launch_dependents") X(reduce, "reduce") X(prefetch, "prefetch")                                \
  X(fractional, "fractional") X(range, "range") X(cvt, "cvt")                                                          \
  X(d1, "1d") X(d2, "2d") X(d3, "3d") X(a1d, "a1d") X(a2d, "a2d") X(cube, "cube") X(acube, "acube")                    \
  X(base, "base") X(level, "level") X(grad, "grad") X(g, "g") X(b, "b") X(a, "a") X(p, "p")                            \
  X(trap, "trap") X(zero, "zero") X(texref, "texref") X(samplerref, "samplerref") X(surfref, "surfref")                \
  X(width, "width") X(height, "height") X(depth, "depth") X(array_size, "array_size")                                  \
  X(channel_data_type, "channel_data_type") X(channel_order, "channel_order")                                          \
  X(num_mipmap_levels, "num_mipmap_levels") X(num_samples, "num_samples")                                              \
  X(normalized_coords, "normalized_coords") X(force_unnormalized_coords, "force_unnormalized_coords")                  \
  X(filter_mode, "filter_mode") X(addr_mode_0, "addr_mode_0") X(addr_mode_1, "addr_mode_1")                            \
  X(addr_mode_2, "addr_mode_2") X(memory_layout, "memory_layout")
// clang-format on

enum class Word : std::uint8_t {
#define X(name, spelling) name,
  SIMGPU_WORDS(X)
#undef X
      none
};

using Words = std::bitset<static_cast<std::size_t>(Word::none)>;

struct Form {
  std::array<ptx::Type, 4> types{};
  unsigned type_count = 0;
  Words words;

  bool has(Word word) const { return words[static_cast<std::size_t>(word)]; }
  ptx::Type type(unsigned i = 0) const { return i < type_count ? types[i] : ptx::Type::None; }
};

// Returns Word::none if the spelling is unknown.
Word word_of(std::string_view spelling);
// Throws ptx::Error for a suffix that is neither a type nor a known word.
Form form_of(const ptx::Instruction& instruction);
// Returns a text such as "add.rn.f32" for error messages.
std::string shown(const ptx::Instruction& instruction);

}  // namespace simgpu
