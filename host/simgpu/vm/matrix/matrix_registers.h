// Moves a matrix between the registers of a warp and a row-major buffer, for the handlers of matrix_*.cc.
#pragma once

#include <array>

#include "host/simgpu/vm/ctx.h"
#include "host/simgpu/vm/matrix/matrix.h"

namespace simgpu::matrix {

template <class T>
T* lanes_of(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

// The offsets of a layout's elements in a row-major matrix. Element e of lane l has the offset lane[l] + element[e].
struct Offsets {
  std::array<std::uint32_t, warp_size> lane;
  std::array<std::uint32_t, 128> element;

  explicit Offsets(const Layout& layout) : lane{}, element{} {
    const auto place = [&](Step step) { return std::uint32_t{step.row} * layout.columns + step.column; };
    for (unsigned l = 0; l < warp_size; ++l) lane[l] = place(layout.of_lane(l));
    for (unsigned e = 0; e < layout.elements; ++e) element[e] = place(layout.of_element(e));
  }
};

// Reads the registers at `places` and sets matrix[...] = decode(bits) for each element. `Word` is the type of a
// register.
template <class Word, class T, class Decode>
void gather(Ctx& c, const Place* places, const Layout& layout, T* matrix, Decode decode) {
  const Offsets offsets(layout);
  const unsigned packed = layout.packed();
  for (unsigned r = 0; r < layout.registers(); ++r) {
    const Word* words = lanes_of<Word>(c, places[r]);
    for (unsigned l = 0; l < warp_size; ++l) {
      for (unsigned k = 0; k < packed; ++k) {
        matrix[offsets.lane[l] + offsets.element[r * packed + k]] =
            static_cast<T>(decode(words[l] >> (k * layout.unit)));
      }
    }
  }
}

// Writes the registers: for each element, bits = encode(matrix[...]).
template <class Word, class T, class Encode>
void scatter(Ctx& c, const Place* places, const Layout& layout, const T* matrix, Encode encode) {
  const Offsets offsets(layout);
  const unsigned packed = layout.packed();
  for (unsigned r = 0; r < layout.registers(); ++r) {
    Word* words = lanes_of<Word>(c, places[r]);
    for (unsigned l = 0; l < warp_size; ++l) {
      Word word = 0;
      for (unsigned k = 0; k < packed; ++k) {
        const Word bits = encode(matrix[offsets.lane[l] + offsets.element[r * packed + k]]);
        word |= bits << (k * layout.unit);
      }
      words[l] = word;
    }
  }
}

}  // namespace simgpu::matrix
