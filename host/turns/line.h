// The pages of ring/turns.h for one worker, as the broker has them: it makes them, passes the worker descriptors of
// both, and keeps them mapped for the scheduler's thread for as long as somebody holds the Line.
//
// Trust: a worker can neither write the grants, nor resize either page, so reading and writing never fault.
#pragma once

#include <memory>
#include <string>

#include "host/broker/fd.h"
#include "ring/turns.h"

namespace host::turns {

class Line {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc.
  static std::shared_ptr<Line> create(const std::string& name, std::string& error);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // What the worker gets: a descriptor of the grants that cannot write, and one of the requests.
  int grants_fd() const { return grants_fd_.get(); }
  int requests_fd() const { return requests_fd_.get(); }

  ring::DeviceGrant& grant(std::uint32_t device) const { return grants_->device[device]; }
  const ring::DeviceRequest& request(std::uint32_t device) const { return requests_->device[device]; }

 private:
  Line() = default;
  bool open(const std::string& name);

  broker::Fd grants_fd_, requests_fd_;
  ring::GrantPage* grants_ = nullptr;
  ring::RequestPage* requests_ = nullptr;
};

}  // namespace host::turns
