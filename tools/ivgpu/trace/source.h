// The sessions of a broker as `ivgpu trace` sees them: what the broker says of them, and what their workers write.
//
// Trust: the broker is believed. A worker is not: its entries are copied once, and read as call_text.h says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ring/ops/trace_socket.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/trace/call_text.h"

namespace ivgpu::trace {

struct Filter {
  std::string vm;  // empty: all
  std::uint32_t slot = ring::any_slot;
  std::uint32_t process = 0;  // as its guest counts; 0: any
};

// A session's worker. Its guest is not known before it is claimed.
struct Session {
  std::uint64_t number = 0;
  std::string vm;
  std::uint32_t slot = 0, worker = 0, process = 0;
};

struct Call {
  const Session& session;
  std::uint32_t channel;
  ring::TraceEntry entry;
  CallText text;
};

class Source {
 public:
  // Returns when the broker has listed what there is; from then on nothing that the filter lets through is missed. An
  // Error when there is no broker, it is of another version, or the filter names what it has not.
  Source(const std::filesystem::path& runtime_dir, const Filter& filter);
  ~Source();

  // From now on only the sessions of this process. Precondition: the filter named none.
  void narrow(std::uint32_t process);

  int fd() const { return socket_.get(); }  // readable when the broker says something
  // Hears what it says. False when the broker has gone.
  bool listen();
  // Hands out calls that have ended and were not handed out yet, in the order of their ends: all, where they are not
  // more than a worker's telemetry holds, and else so many, of each session its share. Those of one channel never
  // change places. False when there was none.
  bool take(const std::function<void(const Call&)>& call);
  // All that there are. It ends, however much is written meanwhile.
  void take_rest(const std::function<void(const Call&)>& call);
  // Sessions that a guest has and whose worker lives.
  std::size_t held() const;
  // Sessions that a guest had and whose worker has gone.
  std::size_t ended() const { return ended_; }
  // Calls that were overwritten before they could be read.
  std::uint64_t lost() const;

 private:
  struct Traced;
  void ask() const;
  bool receive(ring::TraceMessage& message, Fd& descriptor);
  void understand(const ring::TraceMessage& message, Fd descriptor);
  void forget_ended();

  Filter filter_;
  Fd socket_;
  std::map<std::uint64_t, std::unique_ptr<Traced>> sessions_;
  std::uint64_t lost_before_ = 0;  // of sessions that have ended
  std::size_t ended_ = 0;
  bool listed_ = false;
};

}  // namespace ivgpu::trace
