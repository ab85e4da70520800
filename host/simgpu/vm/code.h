// A lowered function: instructions that refer to their handlers and to the places of their operands. The lowering
// creates it. Afterwards it is immutable, and all worker threads read it.
//
// A *place* locates the 32 lanes of a register or constant. It is a byte offset into the frame's registers, or with
// `constant_place` into the function's constants. Lanes of 16, 32 and 64 bits are contiguous; a predicate is a 32-bit
// word with one bit per lane.
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

// Executes an instruction for the lanes of the current path. Returns the next instruction or Ctx::stop.
using Handler = const Ins* (*)(Ctx&, const Ins*);

// `full` may write all lanes, and is called only while all live lanes of the warp run together. `masked` writes only
// the lanes of Ctx::mask.
struct Handlers {
  Handler full = nullptr;
  Handler masked = nullptr;
  explicit operator bool() const { return full != nullptr; }
};

// Bits of Ins::flags.
enum Flag : std::uint32_t {
  round_mask = 3,        // rounding mode: nearest, down, up, toward zero, as MXCSR encodes it
  flag_ftz = 1U << 2,    // subnormal inputs and results become zero
  flag_sat = 1U << 3,    // the result is clamped to [0, 1]
  flag_frame = 1U << 4,  // the address is relative to the frame's local memory
  flag_sync = 1U << 5,   // volatile, atomic and similar: lanes may poll in a loop with this access
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
  std::uint32_t index = 0;   // branch target, call site, or first extra place
  std::uint32_t window = 0;  // memory instructions: index of the cached range
  std::uint16_t count = 1;   // elements of a vector access; variant of a barrier, shuffle or vote
  std::uint16_t space = 0;   // memory instructions: index into Ctx::spaces
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
  GlobalTimerHigh,  // computed when read, like all following registers
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
  const Code* callee = nullptr;  // null: Ins::a holds the address of the function
  std::vector<Piece> args;       // in the frame of the caller
  std::vector<Piece> results;
};

// Functions that the driver provides to device code.
enum class HostCall : std::uint32_t { Print, AssertFail, Malloc, Free, SetCondition };

struct alignas(64) Lanes64 {
  std::byte bytes[64];
};

struct Code {
  std::uint64_t id = 0;  // unique in the process: key of a worker's cached windows
  std::string name;
  bool entry = false;
  std::vector<Ins> body;
  std::vector<std::uint32_t> lines;  // source line of each instruction
  std::vector<Place> extra;          // operands of vector accesses
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> tables;  // branch targets of brx.idx
  std::vector<Lanes64> constants;
  std::vector<SpecialPlace> specials;  // registers that are written when a frame is created
  // The registers of a frame in groups by lane size: predicates, 16, 32, 64 bits. Each group is aligned to a cache
  // line.
  std::array<std::uint32_t, 5> parts{};  // start of each group; the last entry is the total size
  std::uint32_t windows = 0;
  std::uint32_t local_bytes = 0;  // bytes of one thread's frame, without callees
  std::uint32_t stack_bytes = 0;  // bytes of one thread's stack, including all known callees
  bool takes_stack = false;       // the function uses alloca or changes the stack in another way
  bool open_stack = false;        // the stack size is unknown until the function runs
  std::uint32_t static_shared = 0;
  std::uint32_t live_registers = 0;  // estimate of the 32-bit registers that a compiler would use
  std::vector<Piece> params;         // parameters of a .func, in its frame
  std::vector<Piece> results;
  std::uint32_t param_bytes = 0;                        // size of the parameters of an .entry
  const std::vector<const Code*>* functions = nullptr;  // all functions of the module, by index

  std::uint32_t frame_bytes() const { return parts[4]; }
};

}  // namespace simgpu
