#include "host/turns/line.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace host::turns {
namespace {

using broker::Fd;

// A sealed page of this name, mapped to be written. Null on failure.
template <class Page>
Page* make_page(const std::string& name, Fd& memfd) {
  memfd.reset(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd || fchmod(memfd.get(), 0600) != 0 || ftruncate(memfd.get(), sizeof(Page)) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return nullptr;
  void* at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  return at == MAP_FAILED ? nullptr : static_cast<Page*>(at);
}

// The same memory by a descriptor that cannot write; empty on failure.
Fd reader_of(const Fd& memfd) {
  const std::string path = "/proc/self/fd/" + std::to_string(memfd.get());
  return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// From then on nobody else can map it to be written, unless it is kept.
bool seal(const Fd& memfd, bool kept) {
  return fcntl(memfd.get(), F_ADD_SEALS, (kept ? 0 : F_SEAL_FUTURE_WRITE) | F_SEAL_SEAL) == 0;
}

template <class Page>
Page* map_kept(const Fd& memfd) {
  struct stat status {};
  if (!memfd || fstat(memfd.get(), &status) != 0 || status.st_size != static_cast<off_t>(sizeof(Page))) return nullptr;
  void* at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  return at == MAP_FAILED ? nullptr : static_cast<Page*>(at);
}

}  // namespace

std::shared_ptr<Line> Line::create(const std::string& name, bool kept, std::string& error) {
  std::shared_ptr<Line> line(new Line);
  if (line->open(name, kept)) return line;
  error = std::string("cannot be given its pages for turns: ") + std::strerror(errno);
  return nullptr;
}

std::shared_ptr<Line> Line::adopt(Fd grants, Fd requests) {
  std::shared_ptr<Line> line(new Line);
  line->grants_ = map_kept<ring::GrantPage>(grants);
  line->requests_ = map_kept<ring::RequestPage>(requests);
  line->writable_grants_ = std::move(grants);
  line->requests_fd_ = std::move(requests);
  return line->grants_ != nullptr && line->requests_ != nullptr ? line : nullptr;
}

bool Line::open(const std::string& name, bool kept) {
  grants_ = make_page<ring::GrantPage>("grants:" + name, grants_fd_);
  requests_ = make_page<ring::RequestPage>("requests:" + name, requests_fd_);
  if (grants_ == nullptr || requests_ == nullptr || !seal(grants_fd_, kept)) return false;
  Fd reader = reader_of(grants_fd_);
  if (kept) writable_grants_ = std::move(grants_fd_);
  grants_fd_ = std::move(reader);
  return static_cast<bool>(grants_fd_);
}

Line::~Line() {
  if (grants_ != nullptr) munmap(grants_, sizeof *grants_);
  if (requests_ != nullptr) munmap(requests_, sizeof *requests_);
}

}  // namespace host::turns
