// The opcode table. A row is a mnemonic with its allowed types and words and its handlers. An opcode with a row is
// lowered operand by operand; memory, control and calls have functions in lower_*.cc instead. To add a scalar opcode,
// add a row.
//
// Rows lie beside the handlers in ops/, which are compiled for several instruction sets. table() is the processor's
// best, or the one that IVGPU_SIMGPU_ISA names (base, v3, v4).
#pragma once

#include <cstddef>

#include "host/simgpu/vm/code.h"
#include "host/simgpu/vm/form.h"

namespace simgpu {

struct Row {
  const char* name;
  // A letter per operand: d destination and t source of the first type, D and T the same at twice the width. u and U:
  // source and destination of 32 bits; p and P: source and destination predicate. i: constant; k: carry flag (not
  // written).
  const char* signature;
  const char* types;  // allowed first types, separated by blanks
  const char* words;  // allowed words
  Handlers (*pick)(const Form&);
};

struct Rows {
  const Row* begin = nullptr;
  const Row* end = nullptr;
};

// Handlers that the lowering selects by kind, not by mnemonic. Null: no such form.
struct Table {
  Rows rows[11];  // one per file of ops/, in any order, since no form has two rows
  Handlers (*convert)(ptx::Type to, ptx::Type from, const Form& form);
  Handlers (*byte_pair)(ptx::Type to);                        // two floats to 8-bit floats
  Handlers (*cut)(const Form& form);                          // a float to the 19 bits of tf32
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
