// Runs the steps of linking that need neither the other texts nor device memory.
#include "host/simgpu/vm/link/relocatable.h"

#include <set>

#include "host/simgpu/vm/link/link.h"

namespace simgpu {
namespace {

void list_definition(Relocatable& text, std::string_view name, ptx::Linkage linkage) {
  if (linkage == ptx::Linkage::Visible) text.defined.emplace_back(name);
  if (linkage == ptx::Linkage::Weak) text.weak.emplace_back(name);
}

void list_definitions(Relocatable& text, const Unit& unit) {
  for (const ptx::Variable& variable : unit.module.variables) {
    if (!variable.unsized) list_definition(text, variable.name, variable.linkage);
  }
  for (const ptx::Function& function : unit.module.functions) {
    if (function.has_body) list_definition(text, function.name, function.linkage);
  }
}

// Lists the symbols of other texts that initial values refer to.
void list_relocations(std::set<std::string>& needed, const Unit& unit, const ptx::Variable& variable) {
  for (const ptx::Relocation& relocation : variable.relocations) {
    const auto found = unit.names.find(relocation.symbol);
    if (found == unit.names.end()) {
      throw ptx::Error(variable.line, "'" + std::string(relocation.symbol) + "' is not declared");
    }
    if (found->second->elsewhere) needed.emplace(relocation.symbol);
  }
}

std::set<std::string> names_needed(const Unit& unit) {
  std::set<std::string> needed;
  for (const ptx::Variable& variable : unit.module.variables) list_relocations(needed, unit, variable);
  for (const Plan& plan : unit.plans) {
    for (const ptx::Variable& variable : plan.function->variables) list_relocations(needed, unit, variable);
    needed.insert(plan.needs.begin(), plan.needs.end());
  }
  return needed;
}

}  // namespace

Relocatable examine(const std::string& text) {
  Relocatable examined;
  const LoadFailure failure = failure_of([&] {
    const std::unique_ptr<Program> program = parse_all({text});
    program->alone = true;
    define_names(*program);
    Unit& unit = program->units.front();
    plan_functions(unit);
    for (Plan& plan : unit.plans) lower(unit, plan);
    list_definitions(examined, unit);
    const std::set<std::string> needed = names_needed(unit);
    examined.needed.assign(needed.begin(), needed.end());
  });
  examined.code = failure.code;
  examined.log = failure.log;
  return examined;
}

}  // namespace simgpu
