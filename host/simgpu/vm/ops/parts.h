// The rows that the files of ops/ add to the table of their instruction set.
#pragma once

#include "host/simgpu/vm/table.h"

namespace simgpu::SIMGPU_ISA {

Rows integer_rows();
Rows multiply_rows();
Rows divide_rows();
Rows carry_rows();
Rows logic_rows();
Rows shift_rows();
Rows count_rows();
Rows field_rows();
Rows byte_rows();
Rows float_rows();
Rows half_rows();

Handlers pick_convert(ptx::Type to, ptx::Type from, const Form& form);
Handlers pick_half_convert(ptx::Type to, ptx::Type from);
Handlers pick_byte_pair(ptx::Type to);
Handlers pick_cut(const Form& form);
Handlers pick_move(unsigned size);
Handlers pick_resize(unsigned to, unsigned from, bool sign);
Handlers pick_compare(Word comparison, ptx::Type type);
Handlers pick_select(unsigned size);
Handlers pick_predicate(Word operation);
Handlers pick_load(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size);
Handlers pick_store(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size);
Handlers pick_load_param(ptx::Type memory, unsigned lane_size);

}  // namespace simgpu::SIMGPU_ISA
