#include "host/broker/gpu/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace nvml {
namespace {

using host::broker::GpuFacts, ring::Fact;

constexpr unsigned memory_version = nvml_version<nvmlMemory_v2_t>(2);
constexpr unsigned memory_temperature_field = 82;

// More processes than normally share a GPU. A longer list is requested again, with more space.
constexpr unsigned usual_processes = 256, most_processes = 1U << 16;

}  // namespace

struct Library::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*words)(int) = nullptr;
  int (*by_uuid)(const char*, nvmlDevice_t*) = nullptr;
  int (*by_pci)(const char*, nvmlDevice_t*) = nullptr;
  int (*memory)(nvmlDevice_t, nvmlMemory_v2_t*) = nullptr;
  int (*processes)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) = nullptr;
};

Library::Library(void* handle, std::unique_ptr<Functions> functions)
    : handle_(handle), functions_(std::move(functions)) {}

Library::~Library() {
  functions_->shutdown();
  dlclose(handle_);
}

host::Result<std::unique_ptr<Library>> Library::load(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return host::Error{dlerror()};
  // If the host is itself a guest, the loader may find the guest's library, which would query this broker or another.
  if (dlsym(handle, "ivgpu_guest_library") != nullptr) {
    dlclose(handle);
    return host::Error{path + " is a guest's library of ivgpu: name NVIDIA's, or install it"};
  }
  std::string why;
  auto f = std::make_unique<Functions>();
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && why.empty()) why = path + " has no " + name;
  };
  find("nvmlInit_v2", f->init);
  find("nvmlShutdown", f->shutdown);
  find("nvmlErrorString", f->words);
  find("nvmlDeviceGetHandleByUUID", f->by_uuid);
  find("nvmlDeviceGetHandleByPciBusId_v2", f->by_pci);
  find("nvmlDeviceGetMemoryInfo_v2", f->memory);
  find("nvmlDeviceGetComputeRunningProcesses_v3", f->processes);
  int result = NVML_SUCCESS;
  if (why.empty() && (result = f->init()) != NVML_SUCCESS) why = std::string("nvmlInit: ") + f->words(result);
  if (!why.empty()) {
    dlclose(handle);
    return host::Error{why};
  }
  return std::unique_ptr<Library>(new Library(handle, std::move(f)));
}

std::string Library::words(int result) const {
  const char* text = functions_->words(result);
  return text != nullptr ? text : "error " + std::to_string(result);
}

host::Result<Library::Device> Library::find(const std::string& gpu) const {
  Device device = nullptr;
  const bool is_uuid = gpu.starts_with("GPU-") || gpu.starts_with("MIG-");
  const int result = (is_uuid ? functions_->by_uuid : functions_->by_pci)(gpu.c_str(), &device);
  if (result != NVML_SUCCESS) return host::Error{words(result)};
  return device;
}

std::uint64_t Library::memory(Device device) const {
  nvmlMemory_v2_t memory{memory_version, 0, 0, 0, 0};
  const int result = functions_->memory(device, &memory);
  return result == NVML_SUCCESS && memory.total > memory.reserved ? memory.total - memory.reserved : 0;
}

host::Result<std::vector<Process>> Library::processes(Device device) const {
  std::vector<nvmlProcessInfo_t> infos(usual_processes);
  auto count = static_cast<unsigned>(infos.size());
  int result = functions_->processes(device, &count, infos.data());
  while (result == NVML_ERROR_INSUFFICIENT_SIZE && infos.size() < most_processes) {
    infos.resize(2 * infos.size());
    count = static_cast<unsigned>(infos.size());
    result = functions_->processes(device, &count, infos.data());
  }
  if (result != NVML_SUCCESS) return host::Error{words(result)};
  std::vector<Process> all;
  for (unsigned i = 0; i < count && i < infos.size(); ++i)
    all.push_back({infos[i].pid, infos[i].usedGpuMemory, infos[i].usedGpuMemory != nvml_value_not_available});
  return all;
}

namespace {

// Calls a function of the library by name; NVML_ERROR_FUNCTION_NOT_FOUND if it has none.
template <class... A>
nvmlReturn_t ask(void* library, const char* name, A... arguments) {
  const auto function = reinterpret_cast<nvmlReturn_t (*)(A...)>(dlsym(library, name));
  return function != nullptr ? function(arguments...) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

template <class Number>
void keep(GpuFacts& facts, Fact fact, nvmlReturn_t result, Number number) {
  constexpr Number most = ~std::uint32_t{0};
  if (result == NVML_SUCCESS) facts[fact] = static_cast<std::uint32_t>(std::min(number, most));
}

void ask_numbers(void* library, nvmlDevice_t device, GpuFacts& facts) {
  nvmlReturn_t result = NVML_SUCCESS;
  unsigned number = 0, other = 0;
  unsigned long long wide = 0;
#define NUMBER(fact, function)                       \
  result = ask(library, #function, device, &number); \
  keep(facts, Fact::fact, result, number);
#define OF_KIND(fact, function, kind)                                \
  result = ask(library, #function, device, unsigned{kind}, &number); \
  keep(facts, Fact::fact, result, number);
#define PAIR(first, second, function)                        \
  result = ask(library, #function, device, &number, &other); \
  keep(facts, Fact::first, result, number);                  \
  keep(facts, Fact::second, result, other);
#define WIDE(fact, function)                       \
  result = ask(library, #function, device, &wide); \
  keep(facts, Fact::fact, result, wide);
#define ERRORS(fact, function, kind, counter)                                         \
  result = ask(library, #function, device, unsigned{kind}, unsigned{counter}, &wide); \
  keep(facts, Fact::fact, result, wide);
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
}

void ask_apart(void* library, nvmlDevice_t device, GpuFacts& facts) {
  nvmlPciInfo_t pci{};
  if (ask(library, "nvmlDeviceGetPciInfo_v3", device, &pci) == NVML_SUCCESS) {
    facts.bus_id.assign(pci.busId, strnlen(pci.busId, sizeof pci.busId));
    facts[Fact::pci_id] = pci.pciDeviceId;
    facts[Fact::pci_subsystem] = pci.pciSubSystemId;
  }
  nvmlFieldValue_t field{};
  field.fieldId = memory_temperature_field;
  if (ask(library, "nvmlDeviceGetFieldValues", device, 1, &field) == NVML_SUCCESS && field.nvmlReturn == NVML_SUCCESS)
    facts[Fact::memory_temperature] = field.value.uiVal;
}

template <class... A>
std::string text_of(void* library, const char* name, A... before) {
  char text[96] = {};
  const bool answered = ask(library, name, before..., text, unsigned{sizeof text - 1}) == NVML_SUCCESS;
  return answered ? text : "";
}

}  // namespace

GpuFacts Library::facts(Device device) const {
  GpuFacts facts;
  facts.name = text_of(handle_, "nvmlDeviceGetName", device);
  facts.vbios = text_of(handle_, "nvmlDeviceGetVbiosVersion", device);
  facts.driver = text_of(handle_, "nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (ask(handle_, "nvmlSystemGetCudaDriverVersion_v2", &cuda) == NVML_SUCCESS && cuda > 0)
    facts.cuda = static_cast<std::uint32_t>(cuda);
  nvmlMemory_v2_t memory{memory_version, 0, 0, 0, 0};
  if (functions_->memory(device, &memory) == NVML_SUCCESS) facts.total = memory.total, facts.reserved = memory.reserved;
  ask_numbers(handle_, device, facts);
  ask_apart(handle_, device, facts);
  return facts;
}

}  // namespace nvml
