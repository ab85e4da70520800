// Moves matrices between memory and registers, and between registers: wmma.load, wmma.store, ldmatrix, stmatrix,
// movmatrix.
#include <algorithm>
#include <cstring>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/matrix/matrix_registers.h"
#include "host/simgpu/vm/rendezvous.h"
#include "host/simgpu/vm/rights.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu::matrix {
namespace {

// ---- wmma

constexpr std::size_t most_elements = 512;

// The host address at which each line of a matrix begins. A line is a row or a column.
struct Lines {
  std::array<std::uint64_t, warp_size> start{};
  unsigned count = 0;
  std::uint32_t bytes = 0;  // bytes per line
};

// Returns true if all lanes have the same address and stride, as PTX requires.
bool lanes_agree(Ctx& c, const Ins* i) {
  const std::uint64_t* address = lanes_of<std::uint64_t>(c, i->a);
  const std::uint32_t* stride = lanes_of<std::uint32_t>(c, i->b);
  for (unsigned l = 1; l < warp_size; ++l) {
    if (address[l] == address[0] && stride[l] == stride[0]) continue;
    raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, l, "the lanes of a warp name different matrices in memory");
    return false;
  }
  return true;
}

// Computes the address of each line; returns false after a fault. A line must be aligned to four bytes, or to the
// element size if that is larger. The rows of the layout are the lines.
template <bool loads>
bool find_lines(Ctx& c, const Ins* i, const Transfer& transfer, const Layout& layout, Lines& lines) {
  if (!lanes_agree(c, i)) return false;
  const std::uint32_t unit = layout.unit / 8U;
  const std::uint32_t alignment = std::max(4U, unit);
  lines.count = layout.rows;
  lines.bytes = unit * layout.columns;
  const std::uint64_t first = *lanes_of<std::uint64_t>(c, i->a);
  const std::uint64_t bits = std::uint64_t{*lanes_of<std::uint32_t>(c, i->b)} * bits_of(transfer.element);
  for (unsigned line = 0; line < lines.count; ++line) {
    const std::uint64_t address = first + line * bits / 8;
    if (address % alignment != 0) return misaligned_access(c, i, 0, address, alignment), false;
    lines.start[line] =
        loads ? resolve_one(c, 0, address, lines.bytes) : resolve_one_to_write(c, 0, address, lines.bytes);
    if (lines.start[line] == 0) return illegal_access(c, i, 0, address, lines.bytes), false;
  }
  return true;
}

// `Unit` is the type of an element, `Word` that of a register.
template <class Unit, class Word>
void load_units(Ctx& c, const Place* places, const Layout& layout, const Lines& lines) {
  Unit matrix[most_elements];
  for (unsigned line = 0; line < lines.count; ++line) {
    std::memcpy(matrix + line * layout.columns, reinterpret_cast<const void*>(lines.start[line]), lines.bytes);
  }
  scatter<Word>(c, places, layout, matrix, [](Unit unit) { return Word{unit}; });
}

template <class Unit, class Word>
void store_units(Ctx& c, const Place* places, const Layout& layout, const Lines& lines) {
  Unit matrix[most_elements];
  gather<Word>(c, places, layout, matrix, [](Word word) { return word; });
  for (unsigned line = 0; line < lines.count; ++line) {
    std::memcpy(reinterpret_cast<void*>(lines.start[line]), matrix + line * layout.columns, lines.bytes);
  }
}

template <bool loads, class Unit, class Word>
void move_units(Ctx& c, const Place* places, const Layout& layout, const Lines& lines) {
  if constexpr (loads) {
    load_units<Unit, Word>(c, places, layout, lines);
  } else {
    store_units<Unit, Word>(c, places, layout, lines);
  }
}

template <bool loads>
const Ins* move(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  const auto transfer = std::bit_cast<Transfer>(i->imm);
  const Layout by_rows = layout_of(transfer);
  const Layout layout = transfer.columns ? transposed(by_rows) : by_rows;
  Lines lines;
  if (!find_lines<loads>(c, i, transfer, layout, lines)) return c.stop;
  const Place* const places = c.code->extra.data() + i->index;
  switch (layout.unit) {
    case 8: move_units<loads, std::uint8_t, std::uint32_t>(c, places, layout, lines); break;
    case 16: move_units<loads, std::uint16_t, std::uint32_t>(c, places, layout, lines); break;
    case 32: move_units<loads, std::uint32_t, std::uint32_t>(c, places, layout, lines); break;
    default: move_units<loads, std::uint64_t, std::uint64_t>(c, places, layout, lines); break;
  }
  return i + 1;
}

// ---- ldmatrix, stmatrix, movmatrix

constexpr unsigned tile_lines = 8;
constexpr std::uint32_t line_bytes = 16;
using Tile = std::array<std::uint16_t, tile_lines * tile_lines>;

// Resolves the addresses of the tiles; returns false after a fault. Lane l has the address of line l % 8 of tile l / 8.
bool find_tiles(Ctx& c, const Ins* i, std::array<std::uint64_t, warp_size>& host) {
  const std::uint64_t* addresses = lanes_of<std::uint64_t>(c, i->a);
  for (unsigned l = 0; l < tile_lines * i->count; ++l) {
    const std::uint64_t address = addresses[l];
    if (address - shared_window >= window_size) {
      raise_fault(c, i, CUDA_ERROR_ILLEGAL_ADDRESS, l, "a matrix's row does not lie in shared memory");
      return false;
    }
    if (address % line_bytes != 0) return misaligned_access(c, i, l, address, line_bytes), false;
    host[l] = resolve_one(c, l, address, line_bytes);
    if (host[l] == 0) return illegal_access(c, i, l, address, line_bytes), false;
  }
  return true;
}

std::uint32_t same_bits(std::uint16_t value) { return value; }
std::uint16_t lower_half(std::uint32_t word) { return static_cast<std::uint16_t>(word); }

const Ins* load_tiles(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  std::array<std::uint64_t, warp_size> host{};
  if (!find_tiles(c, i, host)) return c.stop;
  for (unsigned t = 0; t < i->count; ++t) {
    Tile tile;
    for (unsigned line = 0; line < tile_lines; ++line) {
      const auto* from = reinterpret_cast<const void*>(host[t * tile_lines + line]);
      std::memcpy(tile.data() + line * tile_lines, from, line_bytes);
    }
    scatter<std::uint32_t>(c, &c.code->extra[i->index + t], tile_layout(i->imm != 0), tile.data(), same_bits);
  }
  return i + 1;
}

const Ins* store_tiles(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  std::array<std::uint64_t, warp_size> host{};
  if (!find_tiles(c, i, host)) return c.stop;
  for (unsigned t = 0; t < i->count; ++t) {
    Tile tile;
    gather<std::uint32_t>(c, &c.code->extra[i->index + t], tile_layout(i->imm != 0), tile.data(), lower_half);
    for (unsigned line = 0; line < tile_lines; ++line) {
      auto* into = reinterpret_cast<void*>(host[t * tile_lines + line]);
      std::memcpy(into, tile.data() + line * tile_lines, line_bytes);
    }
  }
  return i + 1;
}

const Ins* transpose_tile(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  Tile tile;
  gather<std::uint32_t>(c, &i->a, tile_layout(false), tile.data(), lower_half);
  scatter<std::uint32_t>(c, &i->d, tile_layout(true), tile.data(), same_bits);
  return i + 1;
}

}  // namespace

Handlers load_handler() { return {&move<true>, &move<true>}; }
Handlers store_handler() { return {&move<false>, &move<false>}; }
Handlers tiles_load_handler() { return {&load_tiles, &load_tiles}; }
Handlers tiles_store_handler() { return {&store_tiles, &store_tiles}; }
Handlers tile_transpose_handler() { return {&transpose_tile, &transpose_tile}; }

}  // namespace simgpu::matrix
