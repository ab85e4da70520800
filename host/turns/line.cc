#include "host/turns/line.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// The same memory by a descriptor that cannot write. From then on nobody else can map it to be written, either.
bool read_only(Fd& memfd) {
  const std::string path = "/proc/self/fd/" + std::to_string(memfd.get());
  Fd reader(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reader || fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) return false;
  memfd = std::move(reader);
  return true;
}

}  // namespace

std::shared_ptr<Line> Line::create(const std::string& name, std::string& error) {
  std::shared_ptr<Line> line(new Line);
  if (line->open(name)) return line;
  error = std::string("cannot be given its pages for turns: ") + std::strerror(errno);
  return nullptr;
}

bool Line::open(const std::string& name) {
  grants_ = make_page<ring::GrantPage>("grants:" + name, grants_fd_);
  requests_ = make_page<ring::RequestPage>("requests:" + name, requests_fd_);
  return grants_ != nullptr && requests_ != nullptr && read_only(grants_fd_);
}

Line::~Line() {
  if (grants_ != nullptr) munmap(grants_, sizeof *grants_);
  if (requests_ != nullptr) munmap(requests_, sizeof *requests_);
}

}  // namespace host::turns
