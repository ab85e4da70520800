// Passes PTX texts through the simulated GPU's lexer, parser and lowering. Nothing is executed, since a kernel may loop
// forever; the interpreter's own tests check its memory accesses.
#include <string>

#include "host/simgpu/vm/load.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static simgpu::AddressSpace* const space = new simgpu::AddressSpace(std::size_t{64} << 20);
  const std::string text(reinterpret_cast<const char*>(data), size);
  {
    const simgpu::Module::Loaded loaded = simgpu::load_ptx(std::span(&text, 1), *space);
    fuzz::require((loaded.code == CUDA_SUCCESS) == (loaded.module != nullptr), "a module comes with success");
    fuzz::require(loaded.code == CUDA_SUCCESS || !loaded.log.empty(), "a refusal says why");
    if (loaded.module != nullptr) {
      for (const simgpu::Function* f : loaded.module->functions())
        fuzz::require(loaded.module->function(f->name) != nullptr, "a kernel is found by its name");
      for (const simgpu::Global* g : loaded.module->globals())
        fuzz::require(space->check(g->address, g->size), "a global lies in device memory");
    }
  }
  fuzz::require(space->used() == 0, "what a module took goes with it");
  return 0;
}
