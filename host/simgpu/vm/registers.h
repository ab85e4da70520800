// Assigns places in a frame to a function's virtual registers. Registers that are never live together share a place,
// since a frame that fits the processor's cache runs fastest.
#pragma once

#include <cstdint>
#include <vector>

#include "host/simgpu/vm/code.h"

namespace simgpu {

enum class Field : std::uint8_t { D, A, B, C, E, Guard, Extra };

struct Reference {  // an instruction's use of a register
  std::uint32_t ins = 0;
  std::uint32_t reg = 0;
  std::uint32_t extra = 0;  // index into Code::extra for Field::Extra
  Field field = Field::D;
  bool def = false;      // the register is written...
  bool partial = false;  // perhaps not for all running lanes: the old value may still be needed
  bool use = false;
};

struct VirtualRegister {
  std::uint8_t size = 4;  // bytes of a lane; 0: a predicate
  bool pinned = false;    // live throughout the function
};

// Preconditions: references are in instruction order, and branch targets are final. Writes the places into the
// instructions and the layout into `code`.
void place_registers(Code& code, const std::vector<VirtualRegister>& registers,
                     const std::vector<Reference>& references, std::vector<Place>& places);

}  // namespace simgpu
