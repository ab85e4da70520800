// The opcode table: one row is one mnemonic with the types and words it may carry and the choice of its handlers. An
// opcode with a row is lowered operand by operand; one that needs more (memory, control, calls) has a function in
// lower_*.cc instead. A new scalar opcode is a new row.
//
// Rows live beside the handlers in ops/, which are compiled for several instruction sets; table() is the best one that
// this processor has, or the one that IVGPU_SIMGPU_ISA (base, v3, v4) names.
#pragma once

#include <cstddef>

#include "host/simgpu/vm/code.h"
#include "host/simgpu/vm/form.h"

namespace simgpu {

struct Row {
  const char* name;
  // A letter for each operand: d destination, t source of the first type, D and T the same of twice its width, u source
  // of 32 bits, U destination of 32 bits, p and P source and destination predicate, i a constant, k the carry flag (not
  // written).
  const char* signature;
  const char* types;  // that the first may be, separated by blanks
  const char* words;  // that are allowed
  Handlers (*pick)(const Form&);
};

struct Rows {
  const Row* begin = nullptr;
  const Row* end = nullptr;
};

// The handlers that the lowering asks for by kind, not by mnemonic. A null handler: there is no such form.
struct Table {
  Rows rows[11];  // of each file of ops/; the order does not matter, because no form has two rows
  Handlers (*convert)(ptx::Type to, ptx::Type from, const Form& form);
  Handlers (*byte_pair)(ptx::Type to);                        // two singles to floats of eight bits
  Handlers (*cut)(const Form& form);                          // a single to the nineteen bits of tf32
  Handlers (*move)(unsigned size);                            // lanes of `size` bytes
  Handlers (*resize)(unsigned to, unsigned from, bool sign);  // between register sizes
  Handlers (*compare)(Word comparison, ptx::Type type);
  Handlers (*select)(unsigned size);
  Handlers (*predicate)(Word operation);  // and, or, xor; none: not
  Handlers (*load)(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size);
  Handlers (*store)(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size);
  Handlers (*load_param)(ptx::Type memory, unsigned lane_size);
};

const Table& table();

namespace isa_base {
Table make_table();
}
namespace isa_v3 {
Table make_table();
}
namespace isa_v4 {
Table make_table();
}

}  // namespace simgpu
