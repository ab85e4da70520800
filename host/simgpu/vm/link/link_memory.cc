// Assigns addresses to the variables of a program (device memory, shared memory, frames, parameters) and writes their
// initial values.
#include <cstring>

#include "host/simgpu/vm/link/link.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) & ~(to - 1); }

class Places {
 public:
  Places(Program& program, AddressSpace& space) : program_(program), space_(space) {}

  void place() {
    std::uint64_t size = 0;
    for (Symbol& symbol : program_.symbols) {
      if (symbol.kind != Symbol::Kind::Variable || symbol.dynamic) continue;
      if (symbol.space == ptx::Space::Shared) {
        place_shared(symbol);
      } else {
        place_absolute(symbol, size);
      }
    }
    for (Unit& unit : program_.units) {
      for (Plan& plan : unit.plans) place_inner(plan, size);
    }
    if (size != 0) {
      program_.memory = space_.allocate(size);
      if (program_.memory == 0) {
        throw LoadFailure{CUDA_ERROR_OUT_OF_MEMORY, "the module's variables do not fit into device memory"};
      }
      std::memset(reinterpret_cast<void*>(program_.memory), 0, size);
    }
    for (Unit& unit : program_.units) place_kernels_shared(unit);
    initialise_all();
  }

 private:
  void place_shared(Symbol& symbol) {
    const std::uint64_t at = round_up(program_.module_shared, symbol.variable->align);
    if (at + symbol.size > window_size / 4) throw ptx::Error(symbol.variable->line, "shared memory is too small");
    symbol.address = at;
    program_.module_shared = static_cast<std::uint32_t>(at + symbol.size);
  }

  static void place_absolute(Symbol& symbol, std::uint64_t& size) {
    symbol.address = round_up(size, symbol.variable->align);
    size = symbol.address + symbol.size;
    if (size >> 40 != 0) throw LoadFailure{CUDA_ERROR_OUT_OF_MEMORY, "the module's variables are too large"};
  }

  // Places variables that are declared in a function but are not part of its frame. A shared variable of a .func must
  // have the same offset in every kernel.
  void place_inner(Plan& plan, std::uint64_t& size) {
    for (Symbol& symbol : plan.variables) {
      if (symbol.space == ptx::Space::Global || symbol.space == ptx::Space::Const) place_absolute(symbol, size);
      if (symbol.space == ptx::Space::Shared && !symbol.dynamic && !plan.function->entry) place_shared(symbol);
    }
  }

  void place_kernels_shared(Unit& unit) {
    for (Plan& plan : unit.plans) {
      std::uint64_t end = program_.module_shared;
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

  // ---- initial values -----------------------------------------------------------------------------------------------

  void initialise_all() {
    for (Symbol& symbol : program_.symbols) {
      if (symbol.kind == Symbol::Kind::Variable) make_absolute(symbol);
    }
    for (Unit& unit : program_.units) {
      for (Plan& plan : unit.plans) {
        for (Symbol& symbol : plan.variables) make_absolute(symbol);
      }
    }
    for (Unit& unit : program_.units) {
      for (const ptx::Variable& variable : unit.module.variables) initialise(unit, variable);
      for (Plan& plan : unit.plans) {
        for (const Symbol& symbol : plan.variables) write_initial(unit, symbol);
      }
    }
  }

  void make_absolute(Symbol& symbol) {
    if (symbol.space != ptx::Space::Global && symbol.space != ptx::Space::Const) return;
    symbol.address += program_.memory;
    if (symbol.space == ptx::Space::Const) program_.const_bytes += symbol.size;
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
    auto& list = variable.reference == ptx::ReferenceKind::Texture   ? program_.texture_references
                 : variable.reference == ptx::ReferenceKind::Surface ? program_.surface_references
                                                                     : program_.globals;
    list.push_back(std::move(global));
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

  Program& program_;
  AddressSpace& space_;
};

}  // namespace

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

void place_memory(Program& program, AddressSpace& space) { Places(program, space).place(); }

}  // namespace simgpu
