// The opcode table. A row has a mnemonic, the allowed types and words, and the handlers. An opcode with a row is
// lowered operand by operand. Memory, control and call instructions have functions in lower_*.cc instead. To add a
// scalar opcode, add a row.
//
// The rows are next to the handlers in ops/, which are compiled for several instruction sets. table() returns the best
// table for the processor, or the one that IVGPU_SIMGPU_ISA names (base, v3, v4).
#pragma once

#include <cstddef>

#include "host/simgpu/vm/code.h"
#include "host/simgpu/vm/form.h"

namespace simgpu {

struct Row {
  const char* name;
  // One letter per operand:
  // d, t: destination and source of the first type; D, T: the same with twice the width
  // u, U: source and destination of 32 bits; p, P: source and destination predicate
  // i: constant; k: carry flag, which is not an operand in the PTX text
  const char* signature;
  const char* types;  // allowed first types, separated by blanks
  const char* words;  // allowed words
  Handlers (*pick)(const Form&);
};

struct Rows {
  const Row* begin = nullptr;
  const Row* end = nullptr;
};

// Handlers that the lowering selects by kind instead of by mnemonic. Null means that the variant does not exist.
struct Table {
  Rows rows[11];  // one per file of ops/; the order is irrelevant, since no variant has two rows
  Handlers (*convert)(ptx::Type to, ptx::Type from, const Form& form);
  Handlers (*byte_pair)(ptx::Type to);                        // converts two floats to two 8-bit floats
  Handlers (*cut)(const Form& form);                          // converts a float to the 19 bits of tf32
  Handlers (*move)(unsigned size);                            // moves lanes of `size` bytes
  Handlers (*resize)(unsigned to, unsigned from, bool sign);  // converts between register sizes
  Handlers (*compare)(Word comparison, ptx::Type type);
  Handlers (*select)(unsigned size);
  Handlers (*predicate)(Word operation);  // and, or, xor; Word::none: not
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
