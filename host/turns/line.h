// The pages of ring/turns.h for one worker, as the broker has them, and the bell by which the worker wakes the scheduler.
// The broker makes them, passes the worker descriptors of all, and keeps the pages mapped for the scheduler's thread for
// as long as somebody holds the Line.
//
// Trust: but for the grants of a line that the next broker takes over, nothing can be mapped to be written later. A worker
// can neither write the grants, nor resize either page, so reading and writing never fault. It can change, fill and empty
// its own bell, and has no other worker's.
#pragma once

#include <memory>
#include <string>

#include "host/broker/fd.h"
#include "host/broker/shared_fd.h"
#include "ring/turns.h"

namespace host::turns {

class Line {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc.
  // `kept`: the next broker is to write its grants, too, by grants_to_keep(); what keeps others from that is the file's
  // mode, and that the worker closes its descriptor.
  static std::shared_ptr<Line> create(const std::string& name, bool kept, std::string& error);
  // The pages of one that an earlier broker has made to be kept. Null on failure. `bell`: empty where that broker had one
  // bell for all workers; the scheduler then learns of this worker's rings when it looks at the requests.
  static std::shared_ptr<Line> adopt(broker::Fd grants, broker::Fd requests, broker::Fd bell);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // What the worker gets: a descriptor of the grants that cannot write, one of the requests, and the bell.
  int grants_fd() const { return grants_fd_.get(); }
  int requests_fd() const { return requests_fd_.get(); }
  int bell_fd() const { return bell_.get(); }
  // -1 unless it was made to be kept.
  int grants_to_keep() const { return writable_grants_.get(); }

  ring::DeviceGrant& grant(std::uint32_t device) const { return grants_->device[device]; }
  const ring::DeviceRequest& request(std::uint32_t device) const { return requests_->device[device]; }
  // Takes the worker's rings.
  void drain_bell() const { bell_.drain(); }

 private:
  Line() = default;
  bool open(const std::string& name, bool kept);

  broker::Fd grants_fd_, requests_fd_, writable_grants_;
  broker::SharedFd bell_;
  ring::GrantPage* grants_ = nullptr;
  ring::RequestPage* requests_ = nullptr;
};

}  // namespace host::turns
