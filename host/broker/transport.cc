#include "host/broker/transport.h"

#include <sys/uio.h>

#include <utility>

namespace host::broker {

std::unique_ptr<Transport> make_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                          const BrokerOptions& broker, const KeptTransport& keep,
                                          Transport::Events events, std::string& error) {
  return opened_by_path(options)
             ? make_plain_transport(loop, region, options, broker, std::move(events), error)
             : make_doorbell_transport(loop, region, options, broker, keep, std::move(events), error);
}

void drain(int doorbell) {
  std::uint64_t count = 0;
  const iovec into{&count, sizeof count};
  [[maybe_unused]] const auto length = preadv2(doorbell, &into, 1, -1, RWF_NOWAIT);
}

}  // namespace host::broker
