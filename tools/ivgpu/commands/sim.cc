// `ivgpu sim` runs a program that loads the simulated GPU as its libcuda.so.1, without rings and without a broker. The
// library reports calls that the guest library would refuse.
#include <cstdlib>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/install.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {

int sim(const SimOptions& options) {
  const Install install = find_install();
  report_unknown_log_level();
  require(install.sim_lib / "libcuda.so.1", "the simulated GPU");
  const SignalGate gate;
  const char* warn = std::getenv("IVGPU_SIM_WARN");
  Child program({.argv = options.program,
                 .environment = {{"LD_LIBRARY_PATH", prepend_path("LD_LIBRARY_PATH", install.sim_lib)},
                                 {"IVGPU_SIM_WARN", warn != nullptr ? warn : "1"}},
                 .is_users_program = true});
  return wait_passing_signals(program, gate);
}

}  // namespace ivgpu
