// `ivgpu run` runs a program in loopback: the program loads the guest's libcuda.so.1, and its worker runs on this
// machine too.
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu {
namespace {

int run_at(const Install& install, const RunOptions& options, const std::string& region, const SignalGate& gate) {
  Child program(loopback_command(install, options.program, region));
  return wait_passing_signals(program, gate);
}

}  // namespace

Command loopback_command(const Install& install, const std::vector<std::string>& program, const std::string& region) {
  require(install.guest_lib / "libcuda.so.1", "the guest library");
  return {.argv = program,
          .environment = {{"LD_LIBRARY_PATH", prepend_path("LD_LIBRARY_PATH", install.guest_lib)},
                          {"IVGPU_REGION", region}},
          .is_users_program = true};
}

int run(const RunOptions& options) {
  const Install install = find_install();
  require(install.guest_lib / "libcuda.so.1", "the guest library");
  const SignalGate gate;
  if (!options.own_broker)
    if (const auto region = running_broker()) return run_at(install, options, *region, gate);

  const TempDir folder;
  PrivateBroker broker(install, for_a_program_here(options.broker), folder.path(), gate);
  return broker.end(run_at(install, options, broker.socket().string(), gate));
}

}  // namespace ivgpu
