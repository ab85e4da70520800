// ivgpud's configuration file: any text yields either one error message or valid settings.
#include "host/broker/config/config.h"

#include "ring/layout/layout.h"
#include "tests/fuzz/input.h"

namespace {

using fuzz::require;

void check(const host::broker::VmOptions& vm) {
  require(!vm.name.empty() && vm.name.size() < 64, "a VM's name fits into the region's header");
  require(vm.slots >= 1 && vm.slots <= ring::max_slots, "slots: %lld", static_cast<long long>(vm.slots));
  require(vm.spare >= 0, "spare: %lld", static_cast<long long>(vm.spare));
  require(vm.jail == "off" || vm.jail == "required" || vm.jail == "best-effort", "jail = \"%s\"", vm.jail.c_str());
  require(vm.spin_threads >= 0 && vm.spin_us >= 0 && vm.chaos_delay_us >= 0, "spinning and delays are not negative");
  require(vm.starts_per_second >= 1 && vm.start_burst >= 1 && vm.connections >= 1, "rates and limits are positive");
  require(vm.region_size > 0 && (vm.region_size & (vm.region_size - 1)) == 0, "a region's size is a power of two");
  const auto bytes =
      ring::slot_bytes_for(static_cast<std::size_t>(vm.region_size), static_cast<std::uint32_t>(vm.slots));
  require(bytes >= ring::min_slot_bytes, "a slot of %zu bytes", bytes);
  for (const std::string& gpu : vm.gpus) {
    require(!gpu.empty() && gpu.find('\0') == std::string::npos, "an element of gpus is a text or a number");
  }
  require(vm.name.find('/') == std::string::npos, "a VM's name is part of a path, and only its last");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = host::broker::parse_config(text, "ivgpu.toml", 4);
  if (config) {
    for (const auto& vm : config->vms) check(vm);
  } else {
    const std::string& error = config.error().message;
    require(!error.empty() && error.find('\n') == std::string::npos, "what is wrong is told in one sentence");
  }
  return 0;
}
