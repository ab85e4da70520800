// Assigns places in a frame to the virtual registers of a function. Registers that are never live at the same time
// share a place, because a frame that fits into the processor's cache runs fastest.
#pragma once

#include <cstdint>
#include <vector>

#include "host/simgpu/vm/code.h"

namespace simgpu {

enum class Field : std::uint8_t { D, A, B, C, E, Guard, Extra };

struct Reference {  // a use of a register by an instruction
  std::uint32_t ins = 0;
  std::uint32_t reg = 0;
  std::uint32_t extra = 0;  // for Field::Extra: index into Code::extra
  Field field = Field::D;
  bool def = false;      // the instruction writes the register
  bool partial = false;  // not all running lanes may be written, so the old value may still be needed
  bool use = false;
};

struct VirtualRegister {
  std::uint8_t size = 4;  // bytes per lane; 0: a predicate
  bool pinned = false;    // live throughout the function
};

// Preconditions: references are in the order of instructions, and branch targets are final. Writes the places into the
// instructions, and the layout of the frame into `code`.
void place_registers(Code& code, const std::vector<VirtualRegister>& registers,
                     const std::vector<Reference>& references, std::vector<Place>& places);

}  // namespace simgpu
