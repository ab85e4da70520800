// The syntax tree of a PTX module. Registers and a function's own variables are resolved by scope. The tree points into
// the text, which must outlive it. The lowering resolves other names (module variables, functions, labels), because
// several texts may be linked.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/simgpu/ptx/types.h"

namespace simgpu::ptx {

enum class Linkage : std::uint8_t { Static, Visible, Extern, Weak };

// A position in an initialiser that holds a symbol's address.
struct Relocation {
  std::size_t offset = 0;
  unsigned size = 8;
  std::string_view symbol;
  std::int64_t addend = 0;
  bool generic = false;  // generic(symbol): the generic address
};

// The kind of a module variable that is a reference.
enum class ReferenceKind : std::uint8_t { None, Texture, Surface };

struct Variable {
  std::string_view name;
  unsigned line = 0;
  Space space = Space::Global;
  Linkage linkage = Linkage::Static;
  Type type = Type::None;
  unsigned align = 1;
  std::size_t size = 0;  // bytes; 0 with `unsized`
  bool unsized = false;  // name[]: the launch gives its length
  bool managed = false;
  ReferenceKind reference = ReferenceKind::None;  // kind of object whose number the variable holds
  std::vector<std::uint8_t> bytes;                // the initialiser, at most `size` long; the rest is zero
  std::vector<Relocation> relocations;
};

struct Operand {
  enum class Kind : std::uint8_t {
    Register,  // index
    Special,   // name: %tid.x
    Integer,   // value
    Float32,   // value: bits
    Float64,   // value: bits
    Local,     // index of a variable of the function, with `value` as its offset
    Symbol,    // name, with `value` as its offset
    Address,   // parts[0]: base (Register, Local, Symbol or Integer); value: offset; further parts: textures
    List,      // {a, b} or (a, b): parts
    Pair,      // a|b: parts
    Sink,      // _
  };
  Kind kind = Kind::Sink;
  bool negated = false;  // !p
  std::uint32_t index = 0;
  std::int64_t value = 0;
  std::string_view name;
  std::vector<Operand> parts;
};

struct Guard {
  std::uint32_t reg = 0;
  bool negated = false;
};

struct Instruction {
  unsigned line = 0;
  std::uint32_t scope = 0;  // for labels
  std::optional<Guard> guard;
  std::string_view opcode;                 // add
  std::vector<std::string_view> suffixes;  // rn, f32
  std::vector<Operand> operands;
};

struct Prototype {
  std::vector<Variable> returns;
  std::vector<Variable> params;
};

struct Function {
  std::string_view name;
  unsigned line = 0;
  Linkage linkage = Linkage::Static;
  bool entry = false;
  bool has_body = false;
  bool no_return = false;
  Prototype signature;
  std::optional<std::array<std::uint32_t, 3>> max_block;       // .maxntid
  std::optional<std::array<std::uint32_t, 3>> required_block;  // .reqntid
  std::optional<std::array<std::uint32_t, 3>> cluster;         // .reqnctapercluster
  std::uint32_t max_cluster = 0;                               // .maxclusterrank; 0: the device's bound
  std::uint32_t max_registers = 0;                             // .maxnreg; 0: the device's bound
  bool explicit_cluster = false;                               // .explicitcluster
  bool grid_of_clusters = false;                               // .blocksareclusters

  std::vector<Type> registers;      // by index
  std::vector<Variable> variables;  // parameters (returns first), then the body's variables
  std::vector<Instruction> body;
  std::vector<std::uint32_t> scopes;                         // parent of each scope; the first is its own parent
  using Place = std::pair<std::uint32_t, std::string_view>;  // scope and name
  std::map<Place, std::uint32_t> labels;                     // index of the following instruction
  std::map<Place, Prototype> prototypes;
  std::map<Place, std::vector<std::string_view>> branch_targets;
};

struct Module {
  unsigned version = 0;  // 90 for .version 9.0
  unsigned target = 0;   // 75 for sm_75
  std::vector<Variable> variables;
  std::deque<Function> functions;  // declarations and definitions in text order
  std::vector<std::pair<std::string_view, std::string_view>> aliases;
};

}  // namespace simgpu::ptx
