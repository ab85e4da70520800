#include "host/broker/gpu/gpus.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "host/base/parse_text.h"
#include "host/simgpu/image/device_names.h"
#include "ring/layout/layout.h"

namespace host::broker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_of_gpus = "/proc/driver/nvidia/gpus";
// Device files shared by all GPUs, which the driver opens first. nvidia-modeset (displays) and nvidia-caps (MIG) are
// left out.
constexpr const char* shared_devices[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The value of the line "NAME: value"; empty if missing.
std::string_view field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == name)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

using Address = std::array<unsigned, 4>;  // domain, bus, device, function

// "0000:81:00.0", "00000000:81:00.0", "81:00.0", "81:00": the forms of nvidia-smi, lspci and operators.
std::optional<Address> parse_address(std::string_view text) {
  Address address{};
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    const auto function = number_of<unsigned>(text.substr(dot + 1), 16);
    if (!function) return std::nullopt;
    address[3] = *function;
    text = text.substr(0, dot);
  }
  const auto colons = std::count(text.begin(), text.end(), ':');
  if (colons < 1 || colons > 2) return std::nullopt;
  for (std::size_t part = colons == 2 ? 0 : 1; part <= 2; ++part) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto value = number_of<unsigned>(text.substr(0, colon), 16);
    if (!value) return std::nullopt;
    address[part] = *value;
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  return address;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void number_by_address(std::vector<Gpu>& gpus) {
  std::sort(gpus.begin(), gpus.end(),
            [](const Gpu& a, const Gpu& b) { return parse_address(a.pci) < parse_address(b.pci); });
  for (unsigned i = 0; i < gpus.size(); ++i) gpus[i].index = i;
}

// ---- one element of the key ----------------------------------------------------------------------------------------

constexpr std::string_view gpu_prefix = "GPU-", mig_prefix = "MIG-";

// Replaces line ends and other unprintable letters, so that the message stays one line.
std::string quoted(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + text + '"';
}

std::string what_there_is(const std::vector<Gpu>& host) {
  if (host.empty()) return "this host has no GPU: " + std::string(folder_of_gpus) + " lists none";
  std::string text = "this host has ";
  for (std::size_t i = 0; i < host.size(); ++i)
    text += (i == 0 ? "" : i + 1 < host.size() ? ", " : " and ") + in_words(host[i]);
  return text;
}

// The name goes into an environment variable that separates its elements by commas.
bool good_mig_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '/';
  };
  return name.size() > mig_prefix.size() && name.size() <= 80 && std::all_of(name.begin(), name.end(), fits);
}

// Collects all GPUs that the element may name. False if it has none of the three forms.
bool meant_by(const std::string& element, const std::vector<Gpu>& host, std::vector<const Gpu*>& meant) {
  const auto index = number_of<unsigned>(element, 10);
  const auto address = parse_address(element);
  if (!index && !address && !element.starts_with(gpu_prefix)) return false;
  for (const Gpu& gpu : host) {
    const bool is_it = index     ? gpu.index == index
                       : address ? parse_address(gpu.pci) == address
                                 : gpu.uuid.starts_with(element);
    if (is_it) meant.push_back(&gpu);
  }
  return true;
}

Result<void> can_be_given(const Gpu& gpu) {
  if (gpu.uuid.empty())
    return Error{in_words(gpu) +
                 " cannot be given to a VM before the driver has read its UUID: run nvidia-persistenced, or "
                 "nvidia-smi once"};
  if (gpu.node_missing)
    return Error{in_words(gpu) + " has no " + gpu.node + ": run nvidia-modprobe -c " +
                 gpu.node.substr(std::string_view("/dev/nvidia").size())};
  return {};
}

// An error, one sentence, if the element names no GPU.
Result<Gpu> find(const std::string& element, const std::vector<Gpu>& host) {
  std::vector<const Gpu*> meant;
  if (!meant_by(element, host, meant))
    return Error{quoted(element) +
                 " is neither an index, nor a UUID (GPU-... or MIG-...), nor a PCI address (0000:81:00.0)"};
  if (meant.empty()) return Error{"there is no GPU " + quoted(element) + "; " + what_there_is(host)};
  if (meant.size() > 1)
    return Error{quoted(element) + " begins the UUIDs of several GPUs: give more of it; " + what_there_is(host)};
  if (const auto given = can_be_given(*meant.front()); !given) return given.error();
  return *meant.front();
}

Result<Gpu> find_mig(const std::string& element, const std::vector<Gpu>& host) {
  if (std::all_of(host.begin(), host.end(), [](const Gpu& gpu) { return gpu.node.empty(); }))
    return Error{"there is no GPU that could have the MIG device " + quoted(element) + "; " + what_there_is(host)};
  if (!good_mig_name(element)) return Error{quoted(element) + " is no MIG device's UUID, as nvidia-smi -L shows it"};
  Gpu mig;
  mig.uuid = element;
  return mig;
}

// A MIG device may be named twice.
Result<std::vector<Gpu>> find_all(const std::vector<std::string>& wanted, const std::vector<Gpu>& host) {
  std::vector<Gpu> found;
  for (const std::string& element : wanted) {
    const bool mig = element.starts_with(mig_prefix);
    auto gpu = mig ? find_mig(element, host) : find(element, host);
    if (!gpu) return gpu.error();
    for (const Gpu& before : found)
      if (!mig && before.uuid == gpu->uuid)
        return Error{quoted(element) + " is " + in_words(*gpu) + ", which is named twice"};
    found.push_back(*std::move(gpu));
  }
  return found;
}

bool is_mig(const Gpu& gpu) { return !gpu.index; }

// The kernel does not show which device files belong to a MIG device, so its VM's list stays empty.
void name_devices(VmGpus& gpus) {
  if (std::any_of(gpus.list.begin(), gpus.list.end(), is_mig)) return;
  gpus.devices.assign(std::begin(shared_devices), std::end(shared_devices));
  for (const Gpu& gpu : gpus.list)
    if (!gpu.node.empty()) gpus.devices.push_back(gpu.node);
}

}  // namespace

std::string in_words(const Gpu& gpu) {
  if (!gpu.index) return gpu.uuid;
  return "GPU " + std::to_string(*gpu.index) + " (" + (gpu.uuid.empty() ? "UUID not yet known" : gpu.uuid) + ", " +
         gpu.pci + ")";
}

std::optional<Gpu> parse_gpu(std::string_view information) {
  const std::string_view pci = field(information, "Bus Location"), uuid = field(information, "GPU UUID");
  const auto minor = number_of<unsigned>(field(information, "Device Minor"), 10);
  if (!parse_address(pci) || !minor || field(information, "GPU Excluded") == "Yes") return std::nullopt;
  Gpu gpu;
  gpu.pci = pci;
  gpu.node = "/dev/nvidia" + std::to_string(*minor);
  // The kernel shows question marks until the GPU is first used.
  if (uuid.starts_with(gpu_prefix) && uuid.find('?') == std::string_view::npos) gpu.uuid = uuid;
  return gpu;
}

std::vector<Gpu> gpus_of_machine(const std::string& root) {
  std::vector<Gpu> gpus;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root + std::string(folder_of_gpus), failed)) {
    auto gpu = parse_gpu(read_file(entry.path() / "information"));
    if (!gpu) continue;
    gpu->node_missing = !fs::exists(root + gpu->node, failed);
    gpus.push_back(std::move(*gpu));
  }
  number_by_address(gpus);
  return gpus;
}

std::vector<Gpu> simulated_gpus(const char* count) {
  const int devices = number_of<int>(count == nullptr ? "1" : count, 10).value_or(0);
  std::vector<Gpu> gpus;
  if (devices > simgpu::max_devices) return gpus;  // the library rejects this number with a reason
  for (int i = 0; i < devices; ++i) {
    Gpu gpu;
    char pci[16];
    std::snprintf(pci, sizeof pci, "0000:%02x:00.0", static_cast<unsigned>(simgpu::pci_bus_of(i)) & 0xffU);
    gpu.uuid = simgpu::device_uuid_text(i);
    gpu.pci = pci;
    gpus.push_back(std::move(gpu));
  }
  number_by_address(gpus);
  return gpus;
}

Result<VmGpus> choose_gpus(const std::vector<std::string>& wanted, const std::vector<Gpu>& host) {
  if (wanted.empty()) return VmGpus{.all = true, .list = host, .devices = {}};
  auto named = find_all(wanted, host);
  if (!named) return named.error();
  if (named->size() > 1 && std::any_of(named->begin(), named->end(), is_mig))
    return Error{"a MIG device stands alone: CUDA shows a process one of them, and nothing beside it"};
  if (named->size() > ring::max_devices)
    return Error{"a guest sees " + std::to_string(ring::max_devices) + " GPUs at most"};
  VmGpus chosen{.all = false, .list = *std::move(named), .devices = {}};
  name_devices(chosen);
  return chosen;
}

Result<std::vector<Gpu>> find_candidates(const std::vector<std::string>& wanted, const std::vector<Gpu>& host) {
  if (!wanted.empty()) return find_all(wanted, host);
  std::vector<Gpu> candidates;
  std::string why = what_there_is(host);
  for (const Gpu& gpu : host) {
    const auto given = can_be_given(gpu);
    if (given)
      candidates.push_back(gpu);
    else
      why = given.error().message;
  }
  if (candidates.empty()) return Error{why};
  return candidates;
}

VmGpus one_gpu(const Gpu& gpu) {
  VmGpus gpus{.all = false, .list = {gpu}, .devices = {}};
  name_devices(gpus);
  return gpus;
}

void show_only(const VmGpus& gpus, std::vector<std::string>& environment) {
  if (gpus.all) return;
  std::erase_if(environment, [](const std::string& variable) {
    return variable.starts_with("CUDA_VISIBLE_DEVICES=") || variable.starts_with("CUDA_DEVICE_ORDER=");
  });
  std::string visible = "CUDA_VISIBLE_DEVICES=";
  for (const Gpu& gpu : gpus.list) visible += (visible.ends_with('=') ? "" : ",") + gpu.uuid;
  environment.push_back(visible);
  environment.emplace_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

}  // namespace host::broker
