// Maps the names of special registers to their values: the position of a thread in its grid, sizes, masks, clocks.
#include <algorithm>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {
namespace {

struct SpecialName {
  std::string_view name;
  Special which;
  bool wide;
};
constexpr SpecialName special_names[] = {
    {"%tid.x", Special::TidX, false},
    {"%tid.y", Special::TidY, false},
    {"%tid.z", Special::TidZ, false},
    {"%ntid.x", Special::NtidX, false},
    {"%ntid.y", Special::NtidY, false},
    {"%ntid.z", Special::NtidZ, false},
    {"%ctaid.x", Special::CtaidX, false},
    {"%ctaid.y", Special::CtaidY, false},
    {"%ctaid.z", Special::CtaidZ, false},
    {"%nctaid.x", Special::NctaidX, false},
    {"%nctaid.y", Special::NctaidY, false},
    {"%nctaid.z", Special::NctaidZ, false},
    {"%laneid", Special::LaneId, false},
    {"%warpid", Special::WarpId, false},
    {"%nwarpid", Special::NwarpId, false},
    {"%smid", Special::SmId, false},
    {"%nsmid", Special::NsmId, false},
    {"%gridid", Special::GridId, true},
    {"%lanemask_eq", Special::MaskEq, false},
    {"%lanemask_lt", Special::MaskLt, false},
    {"%lanemask_le", Special::MaskLe, false},
    {"%lanemask_gt", Special::MaskGt, false},
    {"%lanemask_ge", Special::MaskGe, false},
    {"%dynamic_smem_size", Special::DynamicShared, false},
    {"%total_smem_size", Special::TotalShared, false},
    {"%aggr_smem_size", Special::TotalShared, false},
    {"%envreg0", Special::Zero, false},
    {"%envreg1", Special::EnvReg1, false},
    {"%envreg2", Special::EnvReg2, false},
    {"%clusterid.x", Special::ClusterIdX, false},
    {"%clusterid.y", Special::ClusterIdY, false},
    {"%clusterid.z", Special::ClusterIdZ, false},
    {"%nclusterid.x", Special::NclusterIdX, false},
    {"%nclusterid.y", Special::NclusterIdY, false},
    {"%nclusterid.z", Special::NclusterIdZ, false},
    {"%cluster_ctaid.x", Special::ClusterCtaidX, false},
    {"%cluster_ctaid.y", Special::ClusterCtaidY, false},
    {"%cluster_ctaid.z", Special::ClusterCtaidZ, false},
    {"%cluster_nctaid.x", Special::ClusterNctaidX, false},
    {"%cluster_nctaid.y", Special::ClusterNctaidY, false},
    {"%cluster_nctaid.z", Special::ClusterNctaidZ, false},
    {"%cluster_ctarank", Special::ClusterCtarank, false},
    {"%cluster_nctarank", Special::ClusterNctarank, false},
    {"%reserved_smem_offset_begin", Special::Zero, false},
    {"%reserved_smem_offset_end", Special::Zero, false},
    {"%reserved_smem_offset_cap", Special::Zero, false},
    {"%reserved_smem_offset_0", Special::Zero, false},
    {"%reserved_smem_offset_1", Special::Zero, false},
    {"%clock", Special::Clock, false},
    {"%clock_hi", Special::ClockHigh, false},
    {"%clock64", Special::Clock64, true},
    {"%globaltimer", Special::GlobalTimer, true},
    {"%globaltimer_lo", Special::GlobalTimerLow, false},
    {"%globaltimer_hi", Special::GlobalTimerHigh, false},
};

}  // namespace

Value Lowering::fixed_special(Special which, bool wide) {
  const auto [found, added] = fixed_specials_.try_emplace(which, 0);
  if (added) {
    found->second = temp(wide ? 8 : 4);
    registers_[found->second].pinned = true;
  }
  return reg_value(found->second);
}

Value Lowering::special(std::string_view name, unsigned size) {
  // This is the only special register that is a predicate.
  if (name == "%is_explicit_cluster") {
    if (size != 0) fail("'%is_explicit_cluster' is a predicate");
    return compared_values(Word::ne, ptx::Type::U32, fixed_special(Special::IsExplicitCluster, false),
                           constant_value(0, 4));
  }
  const auto* found = std::find_if(std::begin(special_names), std::end(special_names),
                                   [&](const SpecialName& row) { return row.name == name; });
  if (found == std::end(special_names)) fail("'" + std::string(name) + "' is no register that is served");
  if (size == 0) fail("'" + std::string(name) + "' is no predicate");
  if (found->which < Special::Clock) return resized(fixed_special(found->which, found->wide), size, false);
  const std::uint32_t reg = temp(found->wide ? 8 : 4);
  const std::uint32_t at = emit(special_handler(found->wide));
  ins(at).count = static_cast<std::uint16_t>(found->which);
  write(at, Field::D, reg);
  return resized(reg_value(reg), size, false);
}

}  // namespace simgpu
