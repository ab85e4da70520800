// Functions that the driver provides to device code: vprintf, __assertfail, malloc, free, cudaGraphSetConditional. As
// in any call, arguments and results are in the caller's local memory.
#include <bit>
#include <cstring>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/format.h"
#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

constexpr std::size_t max_string = 65536;  // limit for a format or a %s argument; longer strings are truncated

std::byte* lane_memory(Ctx& c, unsigned lane, const Piece& piece) {
  const SpaceView& local = c.spaces[space_local];
  return local.base + lane * local.stride + c.local_base + piece.offset;
}

std::uint64_t argument(Ctx& c, const CallSite& site, unsigned lane, std::size_t number) {
  std::uint64_t value = 0;
  if (number >= site.args.size()) return 0;
  const Piece& piece = site.args[number];
  std::memcpy(&value, lane_memory(c, lane, piece), std::min<std::size_t>(piece.size, sizeof value));
  return value;
}

void put_result(Ctx& c, const CallSite& site, unsigned lane, std::uint64_t value) {
  if (site.results.empty()) return;
  const Piece& piece = site.results.front();
  std::memcpy(lane_memory(c, lane, piece), &value, std::min<std::size_t>(piece.size, sizeof value));
}

std::uint64_t read_memory(Ctx& c, unsigned lane, std::uint64_t address, unsigned size) {
  std::uint64_t value = 0;
  const std::uint64_t host = resolve_one(c, lane, address, size);
  if (host != 0) std::memcpy(&value, reinterpret_cast<const void*>(host), size);
  return value;
}

std::string read_string(Ctx& c, unsigned lane, std::uint64_t address) {
  if (address == 0) return "(null)";
  std::string text;
  while (text.size() < max_string) {
    const std::uint64_t host = resolve_one(c, lane, address + text.size(), 1);
    const char letter = host == 0 ? '\0' : *reinterpret_cast<const char*>(host);
    if (letter == '\0') break;
    text += letter;
  }
  return text;
}

void print_lane(Ctx& c, const CallSite& site, unsigned lane, std::string& output) {
  const std::uint64_t buffer = argument(c, site, lane, 1);
  FormatSource source;
  source.argument = [&](std::size_t offset, unsigned size) { return read_memory(c, lane, buffer + offset, size); };
  source.string = [&](std::uint64_t address) { return read_string(c, lane, address); };
  int count = 0;
  output += format_printf(read_string(c, lane, argument(c, site, lane, 0)), source, count);
  put_result(c, site, lane, static_cast<std::uint32_t>(count));
}

std::string triple(const Dim3& at) {
  return "[" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + "]";
}

const Ins* assert_failed(Ctx& c, const Ins* i, const CallSite& site) {
  const auto lane = static_cast<unsigned>(std::countr_zero(c.mask));
  const std::string message = read_string(c, lane, argument(c, site, lane, 0));
  const std::string file = read_string(c, lane, argument(c, site, lane, 1));
  const std::string function = read_string(c, lane, argument(c, site, lane, 3));
  const std::string line = std::to_string(static_cast<std::uint32_t>(argument(c, site, lane, 2)));
  const std::string where = file + ":" + line + ": " + function + ": block: " + triple(c.block->index) + ", thread: ";
  const Dim3& size = c.block->grid->launch.block;
  std::string output;
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const std::uint32_t t = c.warp->index * warp_size + static_cast<std::uint32_t>(std::countr_zero(left));
    output += where;
    output += triple({t % size.x, t / size.x % size.y, t / size.x / size.y});
    output.append(" Assertion `").append(message).append("` failed.\n");
  }
  print(c, output);
  return raise_fault(c, i, CUDA_ERROR_ASSERT, lane, "assertion `" + message + "` failed");
}

const Ins* host_call(Ctx& c, const Ins* i) {
  const CallSite& site = c.code->calls[i->index];
  const auto which = static_cast<HostCall>(i->count);
  if (which == HostCall::AssertFail) return assert_failed(c, i, site);
  std::string output;
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (which == HostCall::Print) {
      print_lane(c, site, lane, output);
    } else if (which == HostCall::SetCondition) {
      const auto value = static_cast<std::uint32_t>(argument(c, site, lane, 1));
      if (const auto* set = c.block->grid->launch.set_condition) (*set)(argument(c, site, lane, 0), value);
    } else if (which == HostCall::Malloc) {
      put_result(c, site, lane, device_malloc(c, argument(c, site, lane, 0)));
    } else if (!device_free(c, argument(c, site, lane, 0))) {
      return raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, lane, "free of memory that malloc did not give");
    }
  }
  if (!output.empty()) print(c, output);
  return i + 1;
}

}  // namespace

Handlers host_call_handler() { return {&host_call, &host_call}; }

}  // namespace simgpu
