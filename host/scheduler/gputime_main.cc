// ivgpu-gputime: disables and enables workers' channels on the GPU for a broker's scheduler. It is a separate process
// so that all channels are enabled again when the broker ends, stalls or is killed, even if a worker is stuck in the
// driver. The process uses a client of NVIDIA's resource manager and no libcuda. docs/design/048-gpu-time.md has the
// reasons.
//
// Trust: this process trusts its broker, which checks the channels that workers report.
#include <fcntl.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/scheduler/helper_service.h"
#include "host/scheduler/rm_client.h"
#include "ring/layout/process_start.h"

namespace {

using namespace host::scheduler;
constexpr int socket_fd = 3, exit_usage = 2;

// Creates a client for a GPU. A descriptor is -1 if its file cannot be opened.
host::Result<std::unique_ptr<host::rm::GpuClient>> create_client(int control_fd, int gpu_fd,
                                                                 const host::rm::Uuid& gpu) {
  if (control_fd < 0 || gpu_fd < 0) return host::Error{"its device files cannot be opened"};
  return host::rm::GpuClient::create(control_fd, gpu_fd, gpu);
}

// Parses "NODE=UUID", with the UUID in 32 hex digits, and opens the GPU. Returns false if the argument is malformed.
// The driver's objects exist as long as the process.
bool open_gpu(std::string_view argument, HelperService::Gpu& gpu) {
  const std::size_t equals = argument.find('=');
  host::rm::Uuid uuid{};
  if (equals == std::string_view::npos || argument.size() != equals + 1 + 2 * uuid.size()) return false;
  const std::string node(argument.substr(0, equals));
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    const char* at = argument.data() + equals + 1 + 2 * i;
    if (std::from_chars(at, at + 2, uuid[i], 16).ptr != at + 2) return false;
  }
  const int control_fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC), gpu_fd = open(node.c_str(), O_RDWR | O_CLOEXEC);
  auto made = create_client(control_fd, gpu_fd, uuid);
  if (!made) {
    std::fprintf(stderr, "%s: %s\n", node.c_str(), made.error().message.c_str());
    gpu.refused = -1;
    return true;
  }
  const std::shared_ptr<host::rm::GpuClient> client = *std::move(made);
  gpu.instance = client->instance();
  gpu.table = std::make_unique<SwitchTable>([client](std::span<const host::rm::ChannelRef> channels, bool off) {
    return client->switch_channels(channels, off);
  });
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  std::vector<HelperService::Gpu> gpus(static_cast<std::size_t>(argc > 1 ? argc - 1 : 0));
  bool good = argc > 1 && gpus.size() <= ring::max_devices && fcntl(socket_fd, F_SETFD, FD_CLOEXEC) == 0;
  for (std::size_t i = 0; good && i < gpus.size(); ++i) good = open_gpu(argv[i + 1], gpus[i]);
  if (!good) {
    std::fputs("ivgpu-gputime: takes GPUs as NODE=UUID, and a socket as descriptor 3; ivgpud starts it, nobody else\n",
               stderr);
    return exit_usage;
  }
  // The process ends when its socket is closed, after it has enabled all channels. A terminal's signals must not end
  // the process before.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  HelperService service(socket_fd, std::move(gpus));
  if (!service.greet()) return EXIT_FAILURE;
  service.run();
  return EXIT_SUCCESS;
}
