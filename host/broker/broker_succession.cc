#include "host/broker/broker_succession.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "host/base/process/listener.h"
#include "host/broker/mps/mps_store.h"

namespace host::broker {

Result<void> BrokerSuccession::prepare(const BrokerOptions& broker) {
  if (!manager_.is_there() || broker.outlive_s == 0) return {};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{fmt::format("a pipe for workers cannot be made: {}", std::strerror(errno))};
  life_of_workers_.reset(ends[0]);
  life_.reset(ends[1]);
  outlive_ms_ = static_cast<std::uint32_t>(broker.outlive_s) * 1000;
  return {};
}

void BrokerSuccession::forget_left() {
  std::set<std::string> vms;
  for (const std::string& name : store_.left(""))
    if (const std::size_t slash = name.find('/'); slash != std::string::npos) vms.insert(name.substr(0, slash));
  for (const std::string& vm : vms) spdlog::warn("{}: its sessions of before the restart end", vm);
  end_left_mps(store_);
  remove_left_sockets(store_);
  store_.forget_left();
}

}  // namespace host::broker
