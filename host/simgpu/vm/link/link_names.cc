// Resolves names across the texts of a program: finds the text that defines a name which another text only declares.
#include "host/simgpu/vm/link/link.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

struct HostName {
  std::string_view name;
  HostCall call;
};
constexpr HostName host_names[] = {{"vprintf", HostCall::Print},
                                   {"__assertfail", HostCall::AssertFail},
                                   {"malloc", HostCall::Malloc},
                                   {"free", HostCall::Free},
                                   {"cudaGraphSetConditional", HostCall::SetCondition}};

class Names {
 public:
  explicit Names(Program& program) : program_(program) {}

  void define(Unit& unit) {
    for (const ptx::Variable& variable : unit.module.variables) define_variable(unit, variable);
    for (const ptx::Function& function : unit.module.functions) {
      if (function.has_body) define_function(unit, function);
    }
  }

  // Resolves the names that a text only declares. Another text or the driver must define them. A missing definition is
  // an error only if the name is used.
  void resolve(Unit& unit) {
    for (const ptx::Variable& variable : unit.module.variables) {
      if (!resolve_name(unit, variable.name) && program_.alone) leave_to_others(unit, variable);
    }
    for (const ptx::Function& function : unit.module.functions) {
      if (!resolve_name(unit, function.name) && program_.alone) leave_to_others(unit, function);
    }
    for (const auto& [alias, target] : unit.module.aliases) {
      const auto found = unit.names.find(target);
      if (found != unit.names.end()) unit.names[alias] = found->second;
    }
    // If a name has several weak definitions, or a weak and a strong one, all texts use the same definition.
    for (auto& [name, symbol] : unit.names) {
      const auto found = global_.find(name);
      if (found != global_.end() && linkage_of(*symbol) != ptx::Linkage::Static) symbol = found->second.symbol;
    }
  }

 private:
  struct Entry {
    Symbol* symbol = nullptr;
    bool weak = false;
  };

  Symbol& add(Symbol symbol) { return program_.symbols.emplace_back(symbol); }

  void publish(std::string_view name, ptx::Linkage linkage, unsigned line, Symbol& symbol) {
    if (linkage == ptx::Linkage::Static) return;
    const auto [found, added] = global_.try_emplace(name, Entry{&symbol, linkage == ptx::Linkage::Weak});
    if (added) return;
    const bool weak = linkage == ptx::Linkage::Weak;
    if (!weak && !found->second.weak) throw ptx::Error(line, "'" + std::string(name) + "' is defined twice");
    if (!weak) found->second = Entry{&symbol, false};
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
    Code& code = program_.codes.emplace_back();
    code.name = function.name;
    code.entry = function.entry;
    code.functions = &program_.functions;
    Symbol symbol;
    symbol.kind = Symbol::Kind::Function;
    symbol.function = &function;
    symbol.code = &code;
    symbol.address = function_window + 16 * program_.functions.size();
    program_.functions.push_back(function.entry ? nullptr : &code);
    Symbol& added = add(symbol);
    if (!unit.names.emplace(function.name, &added).second) {
      throw ptx::Error(function.line, "'" + std::string(function.name) + "' is defined twice");
    }
    // A kernel can be looked up by name even if its linkage is internal.
    publish(function.name, function.linkage, function.line, added);
    Plan& plan = unit.plans.emplace_back();
    plan.function = &function;
    plan.code = &code;
  }

  static ptx::Linkage linkage_of(const Symbol& symbol) {
    if (symbol.dynamic || symbol.kind == Symbol::Kind::Host) return ptx::Linkage::Static;
    return symbol.kind == Symbol::Kind::Function ? symbol.function->linkage : symbol.variable->linkage;
  }

  // Returns false if neither a text of the program nor the driver defines the name.
  bool resolve_name(Unit& unit, std::string_view name) {
    if (unit.names.count(name) != 0) return true;
    if (const auto found = global_.find(name); found != global_.end()) {
      unit.names[name] = found->second.symbol;
      return true;
    }
    for (const HostName& host : host_names) {
      if (host.name != name) continue;
      Symbol symbol;
      symbol.kind = Symbol::Kind::Host;
      symbol.host = host.call;
      unit.names[name] = &add(symbol);
      return true;
    }
    return false;
  }

  void leave_to_others(Unit& unit, const ptx::Variable& variable) {
    Symbol symbol;
    symbol.space = variable.space;
    symbol.size = variable.size;
    symbol.variable = &variable;
    symbol.elsewhere = true;
    unit.names[variable.name] = &add(symbol);
  }

  void leave_to_others(Unit& unit, const ptx::Function& function) {
    Symbol symbol;
    symbol.kind = Symbol::Kind::Function;
    symbol.function = &function;
    symbol.code = &program_.codes.emplace_back();
    symbol.elsewhere = true;
    unit.names[function.name] = &add(symbol);
  }

  Program& program_;
  std::unordered_map<std::string_view, Entry> global_;
};

}  // namespace

void define_names(Program& program) {
  Names names(program);
  for (Unit& unit : program.units) names.define(unit);
  for (Unit& unit : program.units) names.resolve(unit);
}

}  // namespace simgpu
