// Computes the stack and shared memory that a kernel needs together with its callees, and the description that a launch
// reads.
#include <algorithm>

#include "host/simgpu/vm/link/link.h"

namespace simgpu {
namespace {

// Stack bytes for functions whose stack depth is unknown before they run: functions that call themselves, that are
// called through an address, or that use alloca.
constexpr std::uint32_t unknown_stack = 32768;

class Kernels {
 public:
  explicit Kernels(Program& program) : program_(program) {}

  void finish(Unit& unit, Plan& plan) {
    if (!plan.function->entry) return;
    const Need need = need_of(plan);
    Code& code = *plan.code;
    code.stack_bytes = need.stack + (need.unknown ? unknown_stack : 0);
    code.open_stack = need.unknown;
    if (need.shared) code.static_shared = std::max(code.static_shared, program_.module_shared);
    std::unique_ptr<Function> kernel = describe(unit, plan);
    kernel->prints = need.prints;
    kernel->allocates = need.allocates;
    program_.kernels.push_back(std::move(kernel));
  }

 private:
  struct Need {
    std::uint32_t stack = 0;
    bool unknown = false;  // the kernel has recursion or calls through addresses
    bool shared = false;
    bool prints = false;
    bool allocates = false;
  };

  const Plan* plan_of(const Code* code) {
    if (plans_.empty()) {
      for (Unit& unit : program_.units) {
        for (Plan& plan : unit.plans) plans_[plan.code] = &plan;
      }
    }
    return plans_.at(code);
  }

  bool any(bool Plan::*does) const {
    return std::any_of(program_.units.begin(), program_.units.end(), [&](const Unit& unit) {
      return std::any_of(unit.plans.begin(), unit.plans.end(), [&](const Plan& plan) { return plan.*does; });
    });
  }

  // The recursion depth is bounded by the number of functions, because a function that is already being visited counts
  // as recursion.
  Need need_of(const Plan& plan) {
    if (const auto known = needs_.find(plan.code); known != needs_.end()) return known->second;
    Need need;
    if (!under_way_.emplace(plan.code, true).second || under_way_.size() > 4096) return {0, true, true};
    std::uint32_t deepest = 0;
    need.unknown = plan.calls_unknown || plan.takes_stack;
    need.shared = plan.uses_shared || plan.calls_unknown;
    need.prints = plan.prints || (plan.calls_unknown && any(&Plan::prints));
    need.allocates = plan.allocates || (plan.calls_unknown && any(&Plan::allocates));
    for (const Code* callee : plan.callees) {
      const Need inner = need_of(*plan_of(callee));
      deepest = std::max(deepest, inner.stack);
      need.unknown |= inner.unknown;
      need.shared |= inner.shared;
      need.prints |= inner.prints;
      need.allocates |= inner.allocates;
    }
    need.stack = std::min(max_local, plan.code->local_bytes + deepest);
    under_way_.erase(plan.code);
    return needs_[plan.code] = need;
  }

  // Estimates a kernel's registers. A compiler spills registers to fit a block of the declared size. 0 threads: no size
  // is declared.
  static int registers_of(const Code& code, std::uint32_t threads) {
    constexpr std::uint32_t of_a_processor = 65536, least = 16, most = 255, step = 8;
    const std::uint32_t alive = std::clamp((code.live_registers + 2 * step - 1) / step * step, least, most);
    if (threads == 0) return static_cast<int>(alive);
    const std::uint32_t room = of_a_processor / ((threads + warp_size - 1) / warp_size * warp_size) / step * step;
    return static_cast<int>(std::min(alive, room));
  }

  std::unique_ptr<Function> describe(const Unit& unit, const Plan& plan) const {
    auto kernel = std::make_unique<Function>();
    const Code& code = *plan.code;
    kernel->name = code.name;
    for (const Symbol& symbol : plan.variables) {
      if (symbol.space != ptx::Space::Param || symbol.in_frame) continue;
      kernel->params.push_back({static_cast<std::size_t>(symbol.address), static_cast<std::size_t>(symbol.size)});
    }
    kernel->param_bytes = code.param_bytes;
    const auto threads = [](const std::array<std::uint32_t, 3>& size) {
      return std::min<std::uint64_t>(1024, std::uint64_t{size[0]} * size[1] * size[2]);
    };
    if (plan.function->max_block) {
      kernel->max_threads_per_block = static_cast<std::uint32_t>(threads(*plan.function->max_block));
    }
    if (plan.function->required_block) {
      const std::array<std::uint32_t, 3>& size = *plan.function->required_block;
      kernel->max_threads_per_block = static_cast<std::uint32_t>(threads(size));
      kernel->required_block = Dim3{size[0], size[1], size[2]};
    }
    if (plan.function->cluster) {
      const std::array<std::uint32_t, 3>& size = *plan.function->cluster;
      kernel->cluster = Dim3{size[0], size[1], size[2]};
    }
    kernel->max_cluster = plan.function->max_cluster;
    kernel->explicit_cluster = plan.function->explicit_cluster;
    kernel->grid_of_clusters = plan.function->grid_of_clusters;
    kernel->static_shared = code.static_shared;
    kernel->local_bytes = code.stack_bytes;
    kernel->const_bytes = program_.const_bytes;
    const bool bounded = plan.function->max_block || plan.function->required_block;
    kernel->registers = registers_of(code, bounded ? kernel->max_threads_per_block : 0);
    const auto most_registers = static_cast<int>(std::min(plan.function->max_registers, 255U));
    if (most_registers != 0) kernel->registers = std::min(kernel->registers, most_registers);
    kernel->ptx_version = static_cast<int>(unit.module.target);
    kernel->code = &code;
    return kernel;
  }

  Program& program_;
  std::unordered_map<const Code*, const Plan*> plans_;
  std::unordered_map<const Code*, Need> needs_;
  std::unordered_map<const Code*, bool> under_way_;
};

}  // namespace

void describe_kernels(Program& program) {
  Kernels kernels(program);
  for (Unit& unit : program.units) {
    for (Plan& plan : unit.plans) kernels.finish(unit, plan);
  }
}

}  // namespace simgpu
