// ivgpu-worker: serves one guest process with one libcuda.
//
// Process model: ivgpud starts a worker before a guest claims it. The worker has a minimal environment and these
// descriptors only: a socket to ivgpud, the VM's region, the slot's doorbell, its guest's interrupt and its telemetry.
// The worker maps its slot, jails itself, starts the driver, and serves one guest process on one thread for each
// channel. When ivgpud closes the socket or the guest breaks the protocol, the worker exits, and its work on the GPU
// ends. The broker treats a worker as if the worker's guest controlled it.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "host/base/process/control.h"
#include "host/driver/driver.h"
#include "host/session/device_page.h"
#include "host/session/output.h"
#include "host/untrusted/serve.h"
#include "host/worker/channel_report.h"
#include "host/worker/start.h"
#include "ring/layout/process_start.h"

namespace {

using host::worker::Options;

class GpuBackend {
 public:
  explicit GpuBackend(const Options& options) : options_(options) {}

  host::Result<void> start(const std::string& library) {
    host::catch_output();
    auto driver = host::Driver::load(library);
    if (!driver) return driver.error();
    driver_ = *std::move(driver);
    if (waits_asleep()) host::make_events_sleep(*driver_);
    init_result_ = driver_->cuInit(0);
    // Without a usable GPU the session still runs: the guest's own cuInit then returns the driver's error.
    if (init_result_ != CUDA_SUCCESS) return {};
    preload_compilers();
    return make_context();
  }

  void describe(ring::DevicePage& page) {
    host::fill_device_page(*driver_, init_result_, page);
    if (page.simulated != 0) host::catch_diagnosis(*driver_);
  }

  int serve(ring::SlotView slot, const host::worker::Shared& shared) {
    host::ServeOptions serving;
    serving.spin_us = options_.spin_us;
    serving.waits_asleep = waits_asleep();
    serving.wait_spin_ms = options_.wait_spin_ms;
    serving.chaos_delay_us = options_.chaos_delay_us;
    serving.image_bytes = options_.image_bytes;
    serving.objects = options_.objects;
    serving.borrows = options_.borrows;
    serving.context_bytes = options_.context_bytes;
    serving.telemetry = shared.telemetry;
    serving.windows = shared.windows;
    serving.gpu_use = shared.gpu_use;
    serving.interrupt_fd = options_.interrupt_fd;
    serving.life_fd = options_.life_fd;
    serving.outlive = std::chrono::milliseconds(options_.outlive_ms);
    serving.doorbell_by_broker = options_.doorbell_by_broker;
    return static_cast<int>(host::serve(slot, *driver_, serving, options_.doorbell_fd, options_.control_fd));
  }

 private:
  // Loads the driver's compilers now. The driver would load them at a program's first PTX, when the jail forbids
  // mapping code. After this step, the driver finds the compilers by name among the loaded libraries. The simulated GPU
  // has no compilers.
  void preload_compilers() {
    const auto folder = std::filesystem::path(options_.library).parent_path();
    for (const char* name : {"libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4"}) {
      const std::string path = folder / name;
      if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }

  host::Result<void> make_context() {
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUresult result = driver_->cuDeviceGet(&device, 0);
    if (result == CUDA_SUCCESS) result = host::retain_primary(*driver_, device, waits_asleep(), context);
    if (result == CUDA_SUCCESS) result = driver_->cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) return {};
    const char* name = "an unknown error";
    driver_->cuGetErrorName(result, &name);
    return host::Error{"the driver cannot make a context on its first GPU: " + std::string(name)};
  }

  // If a worker may not poll, its threads must not spin in the driver either.
  bool waits_asleep() const { return options_.spin_us == 0; }

  const Options& options_;
  std::unique_ptr<host::Driver> driver_;
  CUresult init_result_ = CUDA_SUCCESS;
};

// Opens the simulated GPU's usage file (host/simgpu/api/device/usage_file.h), which the jail would refuse later.
void open_usage_file() {
  const char* path = std::getenv("IVGPU_SIM_USAGE");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  setenv("IVGPU_SIM_USAGE", ("fd:" + std::to_string(file)).c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  open_usage_file();
  const auto options = host::worker::parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "ivgpu-worker: %s\n", options.error().message.c_str());
    return host::worker::exit_usage;
  }
  GpuBackend gpu(*options);
  const int code = host::worker::run(
      *options, {[&](const std::string& library) { return gpu.start(library); },
                 [&](ring::DevicePage& page) { gpu.describe(page); },
                 [&](ring::SlotView slot, const host::worker::Shared& shared) { return gpu.serve(slot, shared); },
                 host::worker::report_channels_in, host::worker::rm_client});
  // Runs no exit handlers, because the driver's handlers would wait for a GPU that may run a guest's endless kernel.
  // The end of the process frees everything.
  std::fflush(nullptr);
  _exit(code);
}
