// The table of one instruction set, composed of the rows in the other files of this folder.
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {

Table make_table() {
  return {{integer_rows(), multiply_rows(), divide_rows(), carry_rows(), logic_rows(), shift_rows(), count_rows(),
           field_rows(), byte_rows(), float_rows(), half_rows()},
          &pick_convert,
          &pick_byte_pair,
          &pick_cut,
          &pick_move,
          &pick_resize,
          &pick_compare,
          &pick_select,
          &pick_predicate,
          &pick_load,
          &pick_store,
          &pick_load_param};
}

}  // namespace simgpu::SIMGPU_ISA
