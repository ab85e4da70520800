// The group `memory`: the cost of a program's own memory that the device uses, and copies of it. Other files measure
// kernels that read such memory, virtual memory, and pools.
#include "tools/ivgpu/bench/program/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tools/ivgpu/bench/program/parts.h"

namespace measure {
namespace {

constexpr std::size_t page = 4096;

std::string size_in_name(std::size_t bytes) { return std::to_string(bytes >> 20) + "MiB"; }

bool is_simulated(CUdevice device) {
  char name[64] = "";
  CHECK(cuDeviceGetName(name, sizeof name, device));
  return std::string(name) == "ivgpu simulated GPU";
}

// A kernel that occupies a GPU for milliseconds would occupy the simulated GPU for minutes, so kernels on the simulated
// GPU stay small.
MemoryEffort effort_for(CUdevice device, bool quick) {
  MemoryEffort effort{.block = std::size_t{256} << 20,
                      .registrations = 10,
                      .copies = 40,
                      .calls = 320,
                      .read = std::size_t{64} << 20,
                      .kernels = 100,
                      .edge_bits = 11,
                      .passes = 1024,
                      .textures = 20,
                      .grid = {512, 256}};
  if (quick)
    effort.block = std::size_t{4} << 20, effort.registrations = effort.copies = effort.kernels = effort.textures = 3,
    effort.calls = 16;
  if (quick || is_simulated(device))
    effort.read = std::size_t{1} << 20, effort.edge_bits = 6, effort.passes = 4, effort.grid = {4, 64};
  return effort;
}

// ---- copies --------------------------------------------------------------------------------------------------------

struct Block {
  const char* kind;
  void* host;
  unsigned char fill;
  CUdeviceptr device;
};

std::vector<Block> blocks_of(std::size_t bytes) {
  std::vector<Block> blocks;
  void* pinned = nullptr;
  if (GIVEN(cuMemHostAlloc(&pinned, bytes, 0), {"pinned_h2d", "pinned_d2h"}, bytes))
    blocks.push_back({"pinned", pinned, 0x5A, 0});
  void* const own = touched_memory(bytes);
  if (GIVEN(cuMemHostRegister(own, bytes, 0), {"registered_h2d", "registered_d2h"}, bytes))
    blocks.push_back({"registered", own, 0xA6, 0});
  else
    unmap(own, bytes);
  for (Block& block : blocks) CHECK(cuMemAlloc(&block.device, bytes));
  return blocks;
}

void free_blocks(const std::vector<Block>& blocks, std::size_t bytes) {
  for (const Block& block : blocks) {
    CHECK(cuMemFree(block.device));
    if (block.kind == std::string("pinned")) {
      CHECK(cuMemFreeHost(block.host));
    } else {
      CHECK(cuMemHostUnregister(block.host));
      unmap(block.host, bytes);
    }
  }
}

// Alternates between the kinds of memory, so that a disturbance of the machine affects all kinds alike.
void copy_alternately(const std::vector<Block>& blocks, bool to_device, const MemoryEffort& effort) {
  constexpr int warm_up = 2;
  std::vector<Series> all_series;
  for (const Block& block : blocks)
    all_series.emplace_back(block.kind + std::string(to_device ? "_h2d" : "_d2h"), effort.block, warm_up);
  for (int i = 0; i < effort.copies + warm_up; ++i) {
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      all_series[k].time([&, &block = blocks[k]] {
        if (to_device)
          CHECK(cuMemcpyHtoD(block.device, block.host, effort.block));
        else
          CHECK(cuMemcpyDtoH(block.host, block.device, effort.block));
      });
    }
  }
  for (const Series& series : all_series) series.report();
}

bool is_filled(const Block& block, std::size_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(block.host);
  return at[0] == block.fill && std::memcmp(at, at + 1, bytes - 1) == 0;
}

}  // namespace

// ---- helpers of all parts ------------------------------------------------------------------------------------------

bool is_given(CUresult result, const char* call, const Names& names, std::size_t bytes) {
  if (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_OUT_OF_MEMORY) {
    check(result, call);
    return true;
  }
  const std::string function(call, std::strcspn(call, "("));
  const char* const why = result == CUDA_ERROR_NOT_SUPPORTED ? " is not supported" : " finds too little memory";
  for (const std::string& name : names) report_left_out(name.c_str(), bytes, (function + why).c_str());
  return false;
}

bool has(CUdevice device, CUdevice_attribute attribute, const char* what, const Names& names, std::size_t bytes) {
  int there = 0;
  CHECK(cuDeviceGetAttribute(&there, attribute, device));
  if (there != 0) return true;
  for (const std::string& name : names)
    report_left_out(name.c_str(), bytes, ("the device has no " + std::string(what)).c_str());
  return false;
}

void* touched_memory(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail("mmap", std::strerror(errno));
  for (std::size_t k = 0; k < bytes / page; ++k) {
    const auto number = static_cast<std::uint32_t>(k + 1);
    std::memcpy(static_cast<char*>(at) + k * page, &number, sizeof number);
  }
  return at;
}

bool is_as_touched(const void* at, std::size_t bytes) {
  for (std::size_t k = 0; k < bytes / page; ++k) {
    std::uint32_t number = 0;
    std::memcpy(&number, static_cast<const char*>(at) + k * page, sizeof number);
    if (number != k + 1) return false;
  }
  return true;
}

void unmap(void* at, std::size_t bytes) {
  if (munmap(at, bytes) != 0) fail("munmap", std::strerror(errno));
}

CUdeviceptr address_on_device(void* host) {
  CUdeviceptr address = 0;
  CHECK(cuMemHostGetDevicePointer(&address, host, 0));
  return address;
}

// ---- the figures ---------------------------------------------------------------------------------------------------

// Each sample registers new memory: registering the same memory again may be cheaper.
void registrations(const MemoryEffort& effort) {
  constexpr int warm_up = 1;
  const std::string size = size_in_name(effort.block);
  Series begin("register_" + size, 0, warm_up), end("unregister_" + size, 0, warm_up);
  for (int i = 0; i < effort.registrations + warm_up; ++i) {
    void* const at = touched_memory(effort.block);
    CUresult result = CUDA_SUCCESS;
    begin.time([&] { result = driver.cuMemHostRegister(at, effort.block, CU_MEMHOSTREGISTER_DEVICEMAP); });
    if (!is_given(result, "cuMemHostRegister(", {"register_" + size, "unregister_" + size}))
      return unmap(at, effort.block);
    std::uint32_t last = 0;
    CHECK(cuMemcpyDtoH(&last, address_on_device(at) + effort.block - page, sizeof last));
    if (last != effort.block / page) fail("registered memory", "the device reads something else there");
    end.time([&] { CHECK(cuMemHostUnregister(at)); });
    if (!is_as_touched(at, effort.block)) fail("registered memory", "its contents are others afterwards");
    unmap(at, effort.block);
  }
  begin.report();
  end.report();
}

void registered_copies(const MemoryEffort& effort) {
  const std::vector<Block> blocks = blocks_of(effort.block);
  for (const Block& block : blocks) std::memset(block.host, block.fill, effort.block);
  copy_alternately(blocks, true, effort);
  for (const Block& block : blocks) std::memset(block.host, 0, effort.block);
  copy_alternately(blocks, false, effort);
  for (const Block& block : blocks)
    if (!is_filled(block, effort.block)) fail(block.kind, "what was copied is not what came back");
  free_blocks(blocks, effort.block);
}

void memory(bool quick) {
  const Device device = open_device();
  report_ready();
  if (!must_go()) return;
  const MemoryEffort effort = effort_for(device.device, quick);
  registrations(effort);
  registered_copies(effort);
  reading_kernels(device, effort);
  texture_kernel(effort);
  virtual_memory(device, effort);
  pools(device, effort);
}

}  // namespace measure
