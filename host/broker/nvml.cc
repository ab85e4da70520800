#include "host/broker/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace nvml {
namespace {

constexpr int success = 0, not_found = 6, insufficient_size = 7;
constexpr unsigned long long not_available = ~0ULL;

struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct Sample {
  unsigned pid;
  unsigned long long stamp;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(Sample) == 32);

struct Memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned memory_version = sizeof(Memory) | 2U << 24;

// Far more than a GPU is shared by; a list that is longer is asked for again.
constexpr unsigned usual_processes = 256, most_processes = 1U << 16;

}  // namespace

struct Library::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*words)(int) = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*by_pci)(const char*, void**) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
  int (*work)(void*, Sample*, unsigned*, unsigned long long) = nullptr;  // null: the library has none
};

Library::Library(void* handle, std::unique_ptr<Functions> functions)
    : handle_(handle), functions_(std::move(functions)) {}

Library::~Library() {
  functions_->shutdown();
  dlclose(handle_);
}

std::unique_ptr<Library> Library::load(const std::string& path, std::string& why) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why = dlerror();
    return nullptr;
  }
  auto f = std::make_unique<Functions>();
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && why.empty()) why = path + " has no " + name;
  };
  why.clear();
  find("nvmlInit_v2", f->init);
  find("nvmlShutdown", f->shutdown);
  find("nvmlErrorString", f->words);
  find("nvmlDeviceGetHandleByUUID", f->by_uuid);
  find("nvmlDeviceGetHandleByPciBusId_v2", f->by_pci);
  find("nvmlDeviceGetMemoryInfo_v2", f->memory);
  find("nvmlDeviceGetComputeRunningProcesses_v3", f->processes);
  f->work = reinterpret_cast<decltype(f->work)>(dlsym(handle, "nvmlDeviceGetProcessUtilization"));
  int result = success;
  if (why.empty() && (result = f->init()) != success) why = std::string("nvmlInit: ") + f->words(result);
  if (!why.empty()) {
    dlclose(handle);
    return nullptr;
  }
  return std::unique_ptr<Library>(new Library(handle, std::move(f)));
}

std::string Library::words(int result) const {
  const char* text = functions_->words(result);
  return text != nullptr ? text : "error " + std::to_string(result);
}

Library::Device Library::find(const std::string& gpu, std::string& why) const {
  Device device = nullptr;
  const bool is_uuid = gpu.starts_with("GPU-") || gpu.starts_with("MIG-");
  const int result = (is_uuid ? functions_->by_uuid : functions_->by_pci)(gpu.c_str(), &device);
  if (result != success) why = words(result);
  return result == success ? device : nullptr;
}

std::uint64_t Library::memory(Device device, std::string& why) const {
  Memory memory{memory_version, 0, 0, 0, 0};
  const int result = functions_->memory(device, &memory);
  if (result != success) why = words(result);
  return result == success && memory.total > memory.reserved ? memory.total - memory.reserved : 0;
}

bool Library::processes(Device device, std::vector<Process>& all, std::string& why) const {
  std::vector<ProcessInfo> infos(usual_processes);
  auto count = static_cast<unsigned>(infos.size());
  int result = functions_->processes(device, &count, infos.data());
  while (result == insufficient_size && infos.size() < most_processes) {
    infos.resize(2 * infos.size());
    count = static_cast<unsigned>(infos.size());
    result = functions_->processes(device, &count, infos.data());
  }
  if (result != success) {
    why = words(result);
    return false;
  }
  for (unsigned i = 0; i < count && i < infos.size(); ++i)
    all.push_back({infos[i].pid, infos[i].bytes, infos[i].bytes != not_available});
  return true;
}

// A library that finds no sample says so. Samples of nobody, or of more than all of the time, have been seen in the wild.
bool Library::work(Device device, std::int64_t since_us, std::vector<Work>& all, std::string& why) const {
  if (functions_->work == nullptr) return why = "it has no nvmlDeviceGetProcessUtilization", false;
  std::vector<Sample> samples(usual_processes);
  const auto since = static_cast<unsigned long long>(since_us);
  auto count = static_cast<unsigned>(samples.size());
  int result = functions_->work(device, samples.data(), &count, since);
  while (result == insufficient_size && samples.size() < most_processes) {
    samples.resize(2 * samples.size());
    count = static_cast<unsigned>(samples.size());
    result = functions_->work(device, samples.data(), &count, since);
  }
  if (result == not_found) return true;
  if (result != success) return why = words(result), false;
  for (unsigned i = 0; i < count && i < samples.size(); ++i) {
    const auto stamp = static_cast<std::int64_t>(samples[i].stamp);
    if (samples[i].pid != 0 && samples[i].sm <= 100 && stamp > since_us)
      all.push_back({samples[i].pid, samples[i].sm, stamp});
  }
  return true;
}

}  // namespace nvml
