// Several PTX texts linked into one program: resolved symbols, placed variables, numbered functions. The lowering looks
// up names here. A program lives as long as its module, since the code refers to the program.
#pragma once

#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/vm/code.h"

namespace simgpu {

struct Symbol {
  enum class Kind : std::uint8_t { Variable, Function, Host };
  Kind kind = Kind::Variable;
  ptx::Space space = ptx::Space::Global;
  std::uint64_t address = 0;  // absolute, or an offset in the state space; for functions, in the function window
  std::uint64_t size = 0;
  bool dynamic = false;   // shared memory whose size the launch determines
  bool in_frame = false;  // local memory in the function's frame
  const ptx::Variable* variable = nullptr;
  const ptx::Function* function = nullptr;
  const Code* code = nullptr;
  HostCall host = HostCall::Print;
  bool elsewhere = false;  // declared in this text and defined in a text that is not loaded (Program::alone)
};

// A function with a body. `variables` has the symbols of its own variables by index.
struct Plan {
  const ptx::Function* function = nullptr;
  Code* code = nullptr;
  std::vector<Symbol> variables;
  bool uses_shared = false;  // uses shared memory of the module, directly or through a callee
  std::vector<const Code*> callees;
  bool prints = false;                  // calls printf
  bool allocates = false;               // calls malloc or free
  bool calls_unknown = false;           // calls a function through an address
  bool takes_stack = false;             // the stack size is known only at run time
  std::vector<std::string_view> needs;  // names that other texts define
};

struct Unit {
  std::string text;
  ptx::Module module;
  std::unordered_map<std::string_view, Symbol*> names;
  std::deque<Plan> plans;
};

struct Program {
  // only one text of a program is examined before linking, so other texts may define the names that it declares
  bool alone = false;
  std::deque<Unit> units;
  std::deque<Symbol> symbols;
  std::deque<Code> codes;
  std::vector<const Code*> functions;  // by function number
  std::vector<Global> globals;
  std::vector<Global> texture_references, surface_references;
  std::vector<std::unique_ptr<Function>> kernels;
  std::uint64_t memory = 0;  // address of all global and constant variables
  std::size_t const_bytes = 0;
  std::uint32_t module_shared = 0;
};

// The reason why a module cannot be loaded, except for syntax errors (ptx::Error).
struct LoadFailure {
  CUresult code = CUDA_SUCCESS;
  std::string log;
};

// Runs steps that throw ptx::Error or LoadFailure, and returns the failure if there is one.
template <class Steps>
LoadFailure failure_of(Steps steps) {
  try {
    steps();
    return {};
  } catch (const ptx::Error& error) {
    return {CUDA_ERROR_INVALID_PTX, "line " + std::to_string(error.line()) + ": " + error.what()};
  } catch (const LoadFailure& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return {CUDA_ERROR_OUT_OF_MEMORY, "host memory is used up"};
  }
}

// These functions throw ptx::Error and LoadFailure.
std::unique_ptr<Program> parse_all(std::vector<std::string> texts);
std::unique_ptr<Program> link(std::vector<std::string> texts, AddressSpace& space);

// lower.cc: creates plan.code from plan.function.
void lower(const Unit& unit, Plan& plan);

}  // namespace simgpu
