// See program.h: names, places in memory, initial values, and what a kernel needs with everything that it calls.
#include <algorithm>
#include <cstring>

#include "host/simgpu/ptx/parser.h"
#include "host/simgpu/vm/program.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

constexpr unsigned newest_version = 99;  // of the PTX language: all of 9
constexpr unsigned newest_target = 120;
// For functions that call themselves, are called through an address or take room by alloca: how deep is not known
// beforehand.
constexpr std::uint32_t unknown_stack = 32768;
constexpr std::uint32_t max_local = 512 * 1024;  // of a thread, as the device's

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) & ~(to - 1); }

struct HostName {
  std::string_view name;
  HostCall call;
};
constexpr HostName host_names[] = {{"vprintf", HostCall::Print},
                                   {"__assertfail", HostCall::AssertFail},
                                   {"malloc", HostCall::Malloc},
                                   {"free", HostCall::Free}};

class Linker {
 public:
  Linker(std::vector<std::string> texts, AddressSpace& space) : space_(space), program_(std::make_unique<Program>()) {
    for (std::string& text : texts) {
      Unit& unit = program_->units.emplace_back();
      unit.text = std::move(text);
      unit.module = ptx::parse(unit.text);
      check_version(unit.module);
    }
  }

  std::unique_ptr<Program> run() {
    for (Unit& unit : program_->units) define(unit);
    for (Unit& unit : program_->units) resolve(unit);
    for (Unit& unit : program_->units) plan_functions(unit);
    place_memory();
    for (Unit& unit : program_->units) {
      for (Plan& plan : unit.plans) lower(unit, plan);
    }
    for (Unit& unit : program_->units) {
      for (Plan& plan : unit.plans) finish(unit, plan);
    }
    return std::move(program_);
  }

 private:
  static void check_version(const ptx::Module& module) {
    if (module.version > newest_version) {
      throw LoadFailure{CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "line 1: the PTX version " +
                                                                std::to_string(module.version / 10) + "." +
                                                                std::to_string(module.version % 10) + " is not served"};
    }
    if (module.target > newest_target) {
      throw LoadFailure{CUDA_ERROR_INVALID_PTX,
                        "line 2: the target sm_" + std::to_string(module.target) + " is newer than the device"};
    }
  }

  Symbol& add(Symbol symbol) { return program_->symbols.emplace_back(symbol); }

  // ---- names --------------------------------------------------------------------------------------------------------

  void publish(std::string_view name, ptx::Linkage linkage, unsigned line, Symbol& symbol) {
    if (linkage == ptx::Linkage::Static) return;
    const auto [found, added] = global_.try_emplace(name, Entry{&symbol, linkage == ptx::Linkage::Weak});
    if (added) return;
    const bool weak = linkage == ptx::Linkage::Weak;
    if (!weak && !found->second.weak) throw ptx::Error(line, "'" + std::string(name) + "' is defined twice");
    if (!weak) found->second = Entry{&symbol, false};
  }

  void define(Unit& unit) {
    for (const ptx::Variable& variable : unit.module.variables) define_variable(unit, variable);
    for (const ptx::Function& function : unit.module.functions) {
      if (function.has_body) define_function(unit, function);
    }
  }

  void define_variable(Unit& unit, const ptx::Variable& variable) {
    const bool dynamic = variable.space == ptx::Space::Shared && variable.unsized;
    if (variable.linkage == ptx::Linkage::Extern && !dynamic) return;
    if (variable.space == ptx::Space::Local) throw ptx::Error(variable.line, "local memory belongs to a function");
    if (variable.size == 0 && !dynamic) {
      throw ptx::Error(variable.line, "'" + std::string(variable.name) + "' has no size");
    }
    Symbol symbol;
    symbol.space = variable.space;
    symbol.size = variable.size;
    symbol.dynamic = dynamic;
    symbol.variable = &variable;
    Symbol& added = add(symbol);
    if (!unit.names.emplace(variable.name, &added).second) {
      throw ptx::Error(variable.line, "'" + std::string(variable.name) + "' is defined twice");
    }
    if (!dynamic) publish(variable.name, variable.linkage, variable.line, added);
  }

  void define_function(Unit& unit, const ptx::Function& function) {
    Code& code = program_->codes.emplace_back();
    code.name = function.name;
    code.entry = function.entry;
    code.functions = &program_->functions;
    Symbol symbol;
    symbol.kind = Symbol::Kind::Function;
    symbol.function = &function;
    symbol.code = &code;
    symbol.address = function_window + 16 * program_->functions.size();
    program_->functions.push_back(function.entry ? nullptr : &code);
    Symbol& added = add(symbol);
    if (!unit.names.emplace(function.name, &added).second) {
      throw ptx::Error(function.line, "'" + std::string(function.name) + "' is defined twice");
    }
    // A kernel of internal linkage is still found by its name.
    publish(function.name, function.linkage, function.line, added);
    Plan& plan = unit.plans.emplace_back();
    plan.function = &function;
    plan.code = &code;
  }

  // Names that a text only declares: from another text, or from the driver. One that nobody defines is an error only
  // where it is used.
  void resolve(Unit& unit) {
    for (const ptx::Variable& variable : unit.module.variables) resolve_name(unit, variable.name);
    for (const ptx::Function& function : unit.module.functions) resolve_name(unit, function.name);
    for (const auto& [alias, target] : unit.module.aliases) {
      const auto found = unit.names.find(target);
      if (found != unit.names.end()) unit.names[alias] = found->second;
    }
    // Of several weak definitions, or a weak and a strong one, all texts use the same.
    for (auto& [name, symbol] : unit.names) {
      const auto found = global_.find(name);
      if (found != global_.end() && linkage_of(*symbol) != ptx::Linkage::Static) symbol = found->second.symbol;
    }
  }

  static ptx::Linkage linkage_of(const Symbol& symbol) {
    if (symbol.dynamic || symbol.kind == Symbol::Kind::Host) return ptx::Linkage::Static;
    return symbol.kind == Symbol::Kind::Function ? symbol.function->linkage : symbol.variable->linkage;
  }

  void resolve_name(Unit& unit, std::string_view name) {
    if (unit.names.count(name) != 0) return;
    if (const auto found = global_.find(name); found != global_.end()) {
      unit.names[name] = found->second.symbol;
      return;
    }
    for (const HostName& host : host_names) {
      if (host.name != name) continue;
      Symbol symbol;
      symbol.kind = Symbol::Kind::Host;
      symbol.host = host.call;
      unit.names[name] = &add(symbol);
    }
  }

  // ---- places -------------------------------------------------------------------------------------------------------

  void place_memory() {
    std::uint64_t size = 0;
    for (Symbol& symbol : program_->symbols) {
      if (symbol.kind != Symbol::Kind::Variable || symbol.dynamic) continue;
      if (symbol.space == ptx::Space::Shared) {
        place_shared(symbol);
      } else {
        place_absolute(symbol, size);
      }
    }
    for (Unit& unit : program_->units) {
      for (Plan& plan : unit.plans) place_inner(plan, size);
    }
    if (size != 0) {
      program_->memory = space_.allocate(size);
      if (program_->memory == 0) {
        throw LoadFailure{CUDA_ERROR_OUT_OF_MEMORY, "the module's variables do not fit into device memory"};
      }
      std::memset(reinterpret_cast<void*>(program_->memory), 0, size);
    }
    for (Unit& unit : program_->units) place_kernels_shared(unit);
    initialise_all();
  }

  void place_shared(Symbol& symbol) {
    const std::uint64_t at = round_up(program_->module_shared, symbol.variable->align);
    if (at + symbol.size > window_size / 4) throw ptx::Error(symbol.variable->line, "shared memory is too small");
    symbol.address = at;
    program_->module_shared = static_cast<std::uint32_t>(at + symbol.size);
  }

  static void place_absolute(Symbol& symbol, std::uint64_t& size) {
    symbol.address = round_up(size, symbol.variable->align);
    size = symbol.address + symbol.size;
    if (size >> 40 != 0) throw LoadFailure{CUDA_ERROR_OUT_OF_MEMORY, "the module's variables are too large"};
  }

  // Variables within functions that are not in a frame. Shared ones of a .func must lie at the same place for every
  // kernel.
  void place_inner(Plan& plan, std::uint64_t& size) {
    for (Symbol& symbol : plan.variables) {
      if (symbol.space == ptx::Space::Global || symbol.space == ptx::Space::Const) place_absolute(symbol, size);
      if (symbol.space == ptx::Space::Shared && !symbol.dynamic && !plan.function->entry) place_shared(symbol);
    }
  }

  void place_kernels_shared(Unit& unit) {
    for (Plan& plan : unit.plans) {
      std::uint64_t end = program_->module_shared;
      bool any = false;
      for (Symbol& symbol : plan.variables) {
        if (symbol.space != ptx::Space::Shared || symbol.dynamic || !plan.function->entry) continue;
        symbol.address = round_up(end, symbol.variable->align);
        end = symbol.address + symbol.size;
        if (end > window_size / 4) throw ptx::Error(symbol.variable->line, "shared memory is too small");
        any = true;
      }
      if (any) plan.code->static_shared = static_cast<std::uint32_t>(end);
    }
  }

  void plan_functions(Unit& unit) {
    for (Plan& plan : unit.plans) {
      const ptx::Prototype& signature = plan.function->signature;
      const std::size_t formals = signature.returns.size() + signature.params.size();
      std::uint64_t frame = 0;
      std::uint64_t params = 0;
      for (std::size_t k = 0; k < plan.function->variables.size(); ++k) {
        const ptx::Variable& variable = plan.function->variables[k];
        Symbol symbol;
        symbol.space = variable.space;
        symbol.size = variable.size;
        symbol.variable = &variable;
        symbol.dynamic = variable.space == ptx::Space::Shared && variable.unsized;
        const bool formal = k < formals;
        const bool in_memory = variable.space == ptx::Space::Param || variable.space == ptx::Space::Local;
        if (in_memory) {
          symbol.in_frame = !(formal && plan.function->entry);
          std::uint64_t& end = symbol.in_frame ? frame : params;
          symbol.address = round_up(end, variable.align);
          end = symbol.address + variable.size;
          if (end > max_local) throw ptx::Error(variable.line, "local memory of a thread is limited to 512 KiB");
        }
        if (formal && !plan.function->entry) {
          const Piece piece{static_cast<std::uint32_t>(symbol.address), static_cast<std::uint32_t>(symbol.size)};
          (k < signature.returns.size() ? plan.code->results : plan.code->params).push_back(piece);
        }
        plan.variables.push_back(symbol);
      }
      plan.code->local_bytes = static_cast<std::uint32_t>(round_up(frame, 16));
      plan.code->param_bytes = static_cast<std::uint32_t>(params);
    }
  }

  // ---- initial values -----------------------------------------------------------------------------------------------

  void initialise_all() {
    for (Symbol& symbol : program_->symbols) {
      if (symbol.kind == Symbol::Kind::Variable) make_absolute(symbol);
    }
    for (Unit& unit : program_->units) {
      for (Plan& plan : unit.plans) {
        for (Symbol& symbol : plan.variables) make_absolute(symbol);
      }
    }
    for (Unit& unit : program_->units) {
      for (const ptx::Variable& variable : unit.module.variables) initialise(unit, variable);
      for (Plan& plan : unit.plans) {
        for (const Symbol& symbol : plan.variables) write_initial(unit, symbol);
      }
    }
  }

  void make_absolute(Symbol& symbol) {
    if (symbol.space != ptx::Space::Global && symbol.space != ptx::Space::Const) return;
    symbol.address += program_->memory;
    if (symbol.space == ptx::Space::Const) program_->const_bytes += symbol.size;
  }

  void initialise(const Unit& unit, const ptx::Variable& variable) {
    const auto found = unit.names.find(variable.name);
    if (found == unit.names.end() || found->second->variable != &variable) return;
    const Symbol& symbol = *found->second;
    if (symbol.space != ptx::Space::Global && symbol.space != ptx::Space::Const) return;
    write_initial(unit, symbol);
    Global global;
    global.name = variable.name;
    global.address = symbol.address;
    global.size = symbol.size;
    global.constant = variable.space == ptx::Space::Const;
    global.managed = variable.managed;
    program_->globals.push_back(std::move(global));
  }

  void write_initial(const Unit& unit, const Symbol& symbol) {
    if (symbol.space != ptx::Space::Global && symbol.space != ptx::Space::Const) return;
    const ptx::Variable& variable = *symbol.variable;
    std::byte* const memory = reinterpret_cast<std::byte*>(symbol.address);
    if (!variable.bytes.empty()) std::memcpy(memory, variable.bytes.data(), variable.bytes.size());
    for (const ptx::Relocation& relocation : variable.relocations) {
      const auto found = unit.names.find(relocation.symbol);
      if (found == unit.names.end() || found->second->kind == Symbol::Kind::Host) {
        throw ptx::Error(variable.line, "'" + std::string(relocation.symbol) + "' is not declared");
      }
      const std::uint64_t value = found->second->address + static_cast<std::uint64_t>(relocation.addend);
      std::memcpy(memory + relocation.offset, &value, relocation.size);
    }
  }

  // ---- what a kernel needs ------------------------------------------------------------------------------------------

  struct Need {
    std::uint32_t stack = 0;
    bool unknown = false;  // recursion or calls through addresses
    bool shared = false;
  };

  const Plan* plan_of(const Code* code) {
    if (plans_.empty()) {
      for (Unit& unit : program_->units) {
        for (Plan& plan : unit.plans) plans_[plan.code] = &plan;
      }
    }
    return plans_.at(code);
  }

  // Bounded by the number of functions: one that is already on the way is recursion.
  Need need_of(const Plan& plan) {
    if (const auto known = needs_.find(plan.code); known != needs_.end()) return known->second;
    Need need;
    if (!under_way_.emplace(plan.code, true).second || under_way_.size() > 4096) return {0, true, true};
    std::uint32_t deepest = 0;
    need.unknown = plan.calls_unknown || plan.takes_stack;
    need.shared = plan.uses_shared || plan.calls_unknown;
    for (const Code* callee : plan.callees) {
      const Need inner = need_of(*plan_of(callee));
      deepest = std::max(deepest, inner.stack);
      need.unknown |= inner.unknown;
      need.shared |= inner.shared;
    }
    need.stack = std::min(max_local, plan.code->local_bytes + deepest);
    under_way_.erase(plan.code);
    return needs_[plan.code] = need;
  }

  void finish(Unit& unit, Plan& plan) {
    if (!plan.function->entry) return;
    const Need need = need_of(plan);
    Code& code = *plan.code;
    code.stack_bytes = need.stack + (need.unknown ? unknown_stack : 0);
    if (need.shared) code.static_shared = std::max(code.static_shared, program_->module_shared);
    program_->kernels.push_back(describe(unit, plan));
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
    kernel->static_shared = code.static_shared;
    kernel->local_bytes = code.stack_bytes;
    kernel->const_bytes = program_->const_bytes;
    kernel->registers = static_cast<int>(std::clamp<std::uint32_t>((code.live_registers + 15) / 8 * 8, 16, 255));
    kernel->ptx_version = static_cast<int>(unit.module.target);
    kernel->code = &code;
    return kernel;
  }

  struct Entry {
    Symbol* symbol = nullptr;
    bool weak = false;
  };

  AddressSpace& space_;
  std::unique_ptr<Program> program_;
  std::unordered_map<std::string_view, Entry> global_;
  std::unordered_map<const Code*, const Plan*> plans_;
  std::unordered_map<const Code*, Need> needs_;
  std::unordered_map<const Code*, bool> under_way_;

 public:
  // The memory of a program that did not come to be.
  void abandon() {
    if (program_ && program_->memory != 0) space_.free(program_->memory);
  }
};

}  // namespace

std::unique_ptr<Program> link(std::vector<std::string> texts, AddressSpace& space) {
  Linker linker(std::move(texts), space);
  try {
    return linker.run();
  } catch (...) {
    linker.abandon();
    throw;
  }
}

}  // namespace simgpu
