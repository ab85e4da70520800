// A function made ready to run: instructions that name their handlers and the places of their operands. Written by the
// lowering, immutable afterwards, read by the interpreter of every worker thread.
//
// A *place* is where the 32 lanes of a register (or of a constant) lie: an offset in bytes into the registers of the
// current frame, or with `constant_place` set into the function's constants. Lanes of 16, 32 and 64 bits lie one after
// the other, a predicate is one 32-bit word with a bit for each lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/ptx/types.h"

namespace simgpu {

struct Ctx;
struct Ins;
struct Code;
struct Block;

inline constexpr unsigned warp_size = 32;

using Place = std::uint32_t;
inline constexpr Place constant_place = 0x8000'0000;

// Executes one instruction for the lanes of the current path and returns the next one, or Ctx::stop.
using Handler = const Ins* (*)(Ctx&, const Ins*);

// `full` may write every lane: it runs while all lanes of the warp that are still alive run together. `masked` writes
// the lanes of Ctx::mask only.
struct Handlers {
  Handler full = nullptr;
  Handler masked = nullptr;
  explicit operator bool() const { return full != nullptr; }
};

// Ins::flags
enum Flag : std::uint32_t {
  round_mask = 3,        // nearest, down, up, toward zero: the order of the processor's own control register
  flag_ftz = 1U << 2,    // subnormal inputs and results become zero
  flag_sat = 1U << 3,    // the result is clamped to [0, 1]
  flag_frame = 1U << 4,  // the address is relative to the frame's part of local memory
  flag_sync = 1U << 5,   // volatile, atomic...: an access that a lane which waits for another would use
  flag_negated = 1U << 6,
  flag_carry_in = 1U << 7,
  flag_carry_out = 1U << 8,
  flag_no_result = 1U << 9,
  flag_signed = 1U << 10,
  flag_arrive = 1U << 11,
  flag_counted = 1U << 12,
  flag_relu = 1U << 13,  // a negative result becomes zero
};

struct Ins {
  Handler run[2] = {nullptr, nullptr};  // full, masked
  Place d = 0, a = 0, b = 0, c = 0, e = 0;
  Place guard = 0;
  std::int64_t imm = 0;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;   // target, call site, first of the extra places...
  std::uint32_t window = 0;  // memory instructions: whose remembered range this one uses
  std::uint16_t count = 1;   // elements of a vector access; kind of a barrier, shuffle, vote
  std::uint16_t space = 0;   // memory instructions: see Ctx::spaces
};
static_assert(sizeof(Ins) == 64);

enum class Special : std::uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  DynamicShared,
  DynamicBase,
  TotalShared,
  EnvReg1,
  EnvReg2,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  Zero,
  Clock,
  ClockHigh,
  Clock64,
  GlobalTimer,
  GlobalTimerLow,
  GlobalTimerHigh,  // from here on read when asked for
};

struct SpecialPlace {
  Special which = Special::Zero;
  bool wide = false;
  Place place = 0;
};

struct Piece {  // a parameter or result in local memory
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct CallSite {
  const Code* callee = nullptr;  // null: Ins::a holds the function's address
  std::vector<Piece> args;       // in the caller's frame
  std::vector<Piece> results;
};

// Functions that a driver supplies to device code.
enum class HostCall : std::uint32_t { Print, AssertFail, Malloc, Free, SetCondition };

struct alignas(64) Lanes64 {
  std::byte bytes[64];
};

struct Code {
  std::uint64_t id = 0;  // never used again in this process: a worker's memory of a function hangs on it
  std::string name;
  bool entry = false;
  std::vector<Ins> body;
  std::vector<std::uint32_t> lines;  // of the text, by instruction
  std::vector<Place> extra;          // operands of vector accesses
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> tables;  // targets of brx.idx
  std::vector<Lanes64> constants;
  std::vector<SpecialPlace> specials;  // written when a frame is made
  // Registers of a frame by the size of a lane: predicates, 16, 32, 64 bits; each part begins on a cache line.
  std::array<std::uint32_t, 5> parts{};  // where each begins; the last is the size of all
  std::uint32_t windows = 0;
  std::uint32_t local_bytes = 0;  // of one thread's frame, callees not counted
  std::uint32_t stack_bytes = 0;  // of one thread, callees counted as far as is known
  bool takes_stack = false;       // by alloca, or moves the stack's end otherwise
  bool open_stack = false;        // how much of the stack it needs is not known beforehand
  std::uint32_t static_shared = 0;
  std::uint32_t live_registers = 0;  // 32-bit registers a compiler would need
  std::vector<Piece> params;         // .func: in its frame
  std::vector<Piece> results;
  std::uint32_t param_bytes = 0;                        // .entry
  const std::vector<const Code*>* functions = nullptr;  // of the module, by the index in a function's address

  std::uint32_t frame_bytes() const { return parts[4]; }
};

}  // namespace simgpu
