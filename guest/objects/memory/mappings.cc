#include "guest/objects/memory/mappings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "guest/base/log.h"
#include "guest/base/uncancelled.h"
#include "guest/objects/copy/own_proc.h"

namespace guest {
namespace {

void report_no_list(int error) {
  static std::atomic<bool> reported{false};
  if (!reported.exchange(true))
    log(Level::Warn, "cannot read /proc/self/maps (%s): no memory can be registered", std::strerror(error));
}

std::string list_of_mappings() {
  const Uncancelled here;
  std::string text;
  const int fd = own_proc().open_file("maps", O_RDONLY);
  if (fd < 0) {
    report_no_list(errno);
    return text;
  }
  constexpr std::size_t piece = 64 << 10;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    const ssize_t n = read(fd, text.data() + before, piece);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) break;
  }
  close(fd);
  return text;
}

// Parses a line of /proc/self/maps: "start-end rwxp offset device inode  name".
bool parse(const char* line, std::size_t length, Mapping& m) {
  char rights[5] = {}, device[24] = {}, inode[24] = {};
  int name = 0;
  const std::string text(line, length);
  if (std::sscanf(text.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %23s %23s %n", &m.start, &m.end, rights,
                  &m.offset, device, inode, &name) < 6)
    return false;
  m.readable = rights[0] == 'r', m.writable = rights[1] == 'w', m.executable = rights[2] == 'x';
  m.shared = rights[3] == 's';
  m.file = std::string(device) + " " + inode;
  m.name = text.substr(std::min(static_cast<std::size_t>(name), text.size()));
  return true;
}

void cut(Mapping& m, std::uint64_t start, std::uint64_t end) {
  if (m.start < start) m.offset += start - m.start, m.start = start;
  m.end = std::min(m.end, end);
}

}  // namespace

int Mapping::protection() const {
  return (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0) | (executable ? PROT_EXEC : 0);
}

std::vector<Mapping> mappings_in(std::uint64_t start, std::uint64_t end) {
  std::vector<Mapping> found;
  const std::string text = list_of_mappings();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find('\n', at), text.size());
    Mapping m;
    if (parse(text.data() + at, stop - at, m) && m.start < end && m.end > start) {
      cut(m, start, end);
      found.push_back(std::move(m));
    }
    at = stop + 1;
  }
  return found;
}

}  // namespace guest
