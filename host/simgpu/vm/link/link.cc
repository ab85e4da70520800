// Parses texts, checks their versions, and links them into a program step by step.
#include "host/simgpu/vm/link/link.h"

#include "host/simgpu/ptx/parser.h"

namespace simgpu {
namespace {

constexpr unsigned newest_version = 99;  // PTX language version times ten: all versions 9.x
constexpr unsigned newest_target = 120;

void check_version(const ptx::Module& module) {
  if (module.version > newest_version) {
    throw LoadFailure{CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "line 1: the PTX version " +
                                                              std::to_string(module.version / 10) + "." +
                                                              std::to_string(module.version % 10) + " is not served"};
  }
  if (module.target > newest_target) {
    throw LoadFailure{CUDA_ERROR_INVALID_PTX,
                      "line 2: the target sm_" + std::to_string(module.target) + " is newer than the device"};
  }
}

void link_parts(Program& program, AddressSpace& space) {
  define_names(program);
  for (Unit& unit : program.units) plan_functions(unit);
  place_memory(program, space);
  for (Unit& unit : program.units) {
    for (Plan& plan : unit.plans) lower(unit, plan);
  }
  describe_kernels(program);
}

}  // namespace

std::unique_ptr<Program> parse_all(std::vector<std::string> texts) {
  auto program = std::make_unique<Program>();
  for (std::string& text : texts) {
    Unit& unit = program->units.emplace_back();
    unit.text = std::move(text);
    unit.module = ptx::parse(unit.text);
    check_version(unit.module);
  }
  return program;
}

std::unique_ptr<Program> link(std::vector<std::string> texts, AddressSpace& space) {
  std::unique_ptr<Program> program = parse_all(std::move(texts));
  try {
    link_parts(*program, space);
    return program;
  } catch (...) {
    if (program->memory != 0) space.free(program->memory);
    throw;
  }
}

}  // namespace simgpu
