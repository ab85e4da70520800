// The syntax tree of a PTX module. The parser resolves registers and a function's own variables by scope. The tree
// points into the text, which must outlive it. The lowering resolves all other names (module variables, functions,
// labels), because several texts may be linked.
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

// An offset in an initialiser at which the linker writes a symbol's address.
struct Relocation {
  std::size_t offset = 0;
  unsigned size = 8;
  std::string_view symbol;
  std::int64_t addend = 0;
  bool generic = false;  // for generic(symbol): the symbol's generic address
};

// Whether a module variable is a texture or surface reference.
enum class ReferenceKind : std::uint8_t { None, Texture, Surface };

struct Variable {
  std::string_view name;
  unsigned line = 0;
  Space space = Space::Global;
  Linkage linkage = Linkage::Static;
  Type type = Type::None;
  unsigned align = 1;
  std::size_t size = 0;  // bytes; 0 if `unsized`
  bool unsized = false;  // for name[]: the launch gives the length
  bool managed = false;
  ReferenceKind reference = ReferenceKind::None;  // kind of the object whose number the variable holds
  // the initialiser, of at most `size` bytes; the rest of the variable is zero
  std::vector<std::uint8_t> bytes;
  std::vector<Relocation> relocations;
};

struct Operand {
  enum class Kind : std::uint8_t {
    Register,  // members: index
    Special,   // member: name, such as %tid.x
    Integer,   // member: value
    Float32,   // member: value, the bits
    Float64,   // member: value, the bits
    Local,     // members: index of a variable of the function; value, an offset
    Symbol,    // members: name; value, an offset
    // members: parts[0], the base (Register, Local, Symbol or Integer); value, an offset; further parts for textures
    Address,
    List,  // {a, b} or (a, b); member: parts
    Pair,  // a|b; member: parts
    Sink,  // the discarded result _
  };
  Kind kind = Kind::Sink;
  bool negated = false;  // for !p
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
  std::uint32_t scope = 0;  // used to look up labels
  std::optional<Guard> guard;
  std::string_view opcode;                 // for example add
  std::vector<std::string_view> suffixes;  // for example rn, f32
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
  std::optional<std::array<std::uint32_t, 3>> max_block;       // from .maxntid
  std::optional<std::array<std::uint32_t, 3>> required_block;  // from .reqntid
  std::optional<std::array<std::uint32_t, 3>> cluster;         // from .reqnctapercluster
  std::uint32_t max_cluster = 0;                               // from .maxclusterrank; 0: the device's limit
  std::uint32_t max_registers = 0;                             // from .maxnreg; 0: the device's limit
  bool explicit_cluster = false;                               // from .explicitcluster
  bool grid_of_clusters = false;                               // from .blocksareclusters

  std::vector<Type> registers;      // types by register index
  std::vector<Variable> variables;  // parameters (results first), then the body's variables
  std::vector<Instruction> body;
  std::vector<std::uint32_t> scopes;                         // parent of each scope; the first scope is its own parent
  using Place = std::pair<std::uint32_t, std::string_view>;  // scope and name
  std::map<Place, std::uint32_t> labels;                     // index of the instruction that follows the label
  std::map<Place, Prototype> prototypes;
  std::map<Place, std::vector<std::string_view>> branch_targets;
};

struct Module {
  unsigned version = 0;  // 90 for `.version 9.0`
  unsigned target = 0;   // 75 for `.target sm_75`
  std::vector<Variable> variables;
  std::deque<Function> functions;  // declarations and definitions, in the order of the text
  std::vector<std::pair<std::string_view, std::string_view>> aliases;
};

}  // namespace simgpu::ptx
