#include "host/broker/transport/transport.h"

#include <fmt/format.h>

#include <utility>

namespace host::broker {

Result<std::unique_ptr<Transport>> make_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                  const BrokerOptions& broker, const KeptTransport& keep,
                                                  Transport::Events events) {
  return opened_by_path(options) ? make_plain_transport(loop, region, options, broker, keep, std::move(events))
                                 : make_doorbell_transport(loop, region, options, broker, keep, std::move(events));
}

std::string socket_path(const std::string& runtime_dir, const std::string& vm) {
  return runtime_dir + "/" + vm + ".sock";
}

std::string memory_path(const std::string& runtime_dir, const std::string& vm) {
  return runtime_dir + "/" + vm + ".memory";
}

std::string name_of_doorbell(std::uint32_t slot) { return fmt::format("doorbell/{}", slot); }
std::string name_of_interrupt(std::uint32_t number) { return fmt::format("interrupt/{}", number); }

std::vector<std::string> kept_doorbells(const VmOptions& options) {
  std::vector<std::string> names;
  if (!opened_by_path(options)) names.emplace_back(name_of_broker_doorbell);
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(options.slots); ++k) names.push_back(name_of_doorbell(k));
  for (std::uint32_t v = 0; v < guest_vectors(options); ++v) names.push_back(name_of_interrupt(v));
  return names;
}

}  // namespace host::broker
