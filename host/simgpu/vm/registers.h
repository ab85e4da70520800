// Gives the virtual registers of a function their places in a frame: registers that are never alive at the same time
// share one, because a frame that fits the processor's cache is what makes the interpreter fast.
#pragma once

#include <cstdint>
#include <vector>

#include "host/simgpu/vm/code.h"

namespace simgpu {

enum class Field : std::uint8_t { D, A, B, C, E, Guard, Extra };

struct Reference {  // of an instruction to a register
  std::uint32_t ins = 0;
  std::uint32_t reg = 0;
  std::uint32_t extra = 0;  // index into Code::extra for Field::Extra
  Field field = Field::D;
  bool def = false;      // the register is written...
  bool partial = false;  // ...but perhaps not for every lane that runs here: its old value may still be needed
  bool use = false;
};

struct VirtualRegister {
  std::uint8_t size = 4;  // bytes of a lane; 0: a predicate
  bool pinned = false;    // alive from beginning to end
};

// Preconditions: references are in the order of their instructions; targets of branches are final. Writes the places
// into the instructions and the layout into `code`.
void place_registers(Code& code, const std::vector<VirtualRegister>& registers,
                     const std::vector<Reference>& references, std::vector<Place>& places);

}  // namespace simgpu
