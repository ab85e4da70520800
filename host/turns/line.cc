#include "host/turns/line.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "host/broker/sealed_memory.h"

namespace host::turns {
namespace {

using broker::Fd;

// Null on failure.
template <class Page>
Page* map_page(const Fd& memfd) {
  return broker::has_size(memfd, sizeof(Page)) ? static_cast<Page*>(broker::map_memory(memfd, sizeof(Page))) : nullptr;
}

}  // namespace

std::shared_ptr<Line> Line::create(const std::string& name, bool kept, std::string& error) {
  std::shared_ptr<Line> line(new Line);
  if (line->open(name, kept)) return line;
  error = std::string("cannot be given its pages for turns: ") + std::strerror(errno);
  return nullptr;
}

std::shared_ptr<Line> Line::adopt(Fd grants, Fd requests, Fd bell) {
  std::shared_ptr<Line> line(new Line);
  line->grants_ = map_page<ring::GrantPage>(grants);
  line->requests_ = map_page<ring::RequestPage>(requests);
  line->writable_grants_ = std::move(grants);
  line->requests_fd_ = std::move(requests);
  line->bell_ = broker::SharedFd(std::move(bell));
  return line->grants_ != nullptr && line->requests_ != nullptr ? line : nullptr;
}

bool Line::open(const std::string& name, bool kept) {
  grants_fd_ = broker::make_sealed_memory("grants:" + name, sizeof(ring::GrantPage));
  requests_fd_ = broker::make_sealed_memory("requests:" + name, sizeof(ring::RequestPage));
  grants_ = map_page<ring::GrantPage>(grants_fd_);
  requests_ = map_page<ring::RequestPage>(requests_fd_);
  bell_ = broker::SharedFd::make_bell();
  if (grants_ == nullptr || requests_ == nullptr || !bell_ || !broker::seal_for_good(grants_fd_, kept)) return false;
  Fd reader = broker::reader_of(grants_fd_);
  if (kept) writable_grants_ = std::move(grants_fd_);
  grants_fd_ = std::move(reader);
  return static_cast<bool>(grants_fd_);
}

Line::~Line() {
  if (grants_ != nullptr) munmap(grants_, sizeof *grants_);
  if (requests_ != nullptr) munmap(requests_, sizeof *requests_);
}

}  // namespace host::turns
