// The sessions of a broker for `ivgpu trace`: the broker's reports, and the telemetry of the workers.
//
// Trust: the broker is trusted. Workers are not: each entry is copied once and read as call_text.h describes.
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
  std::uint32_t process = 0;  // process id in the guest; 0: any
};

// The session of a worker. Its guest process is unknown until the slot is claimed.
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
  // Returns when the broker has listed its sessions; later calls that match the filter are not missed. Throws an Error
  // if no broker answers, if the broker's version differs, or if the filter matches nothing.
  Source(const std::filesystem::path& runtime_dir, const Filter& filter);
  ~Source();

  // Keeps only the sessions of this process. Precondition: the filter named no process.
  void narrow(std::uint32_t process);

  int fd() const { return socket_.get(); }  // readable when a message of the broker arrives
  // Reads the broker's messages. Returns false when the broker has ended.
  bool listen();
  // Passes on new ended calls, ordered by their ends. Reads at most as many calls per invocation as one worker's
  // telemetry holds, shared equally by the sessions. Calls of one channel stay in order. Returns false if there was no
  // new call.
  bool take(const std::function<void(const Call&)>& call);
  // Passes on all remaining calls. Terminates even if workers keep writing.
  void take_rest(const std::function<void(const Call&)>& call);
  // The number of live sessions that a guest has claimed.
  std::size_t held() const;
  // The number of ended sessions that a guest had claimed.
  std::size_t ended() const { return ended_; }
  // The number of calls that were overwritten before they were read.
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
  std::uint64_t lost_before_ = 0;  // of ended sessions
  std::size_t ended_ = 0;
  bool listed_ = false;
};

}  // namespace ivgpu::trace
