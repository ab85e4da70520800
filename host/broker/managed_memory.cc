#include "host/broker/managed_memory.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

namespace host::broker {
namespace {

constexpr std::size_t longest_list = std::size_t{16} << 20;

// The name may have other folders before it, in a namespace with mounts of its own. The sister file for tools counts, too.
constexpr std::string_view device_file = "/nvidia-uvm";

// "BEGIN-END ..." of a line, in hexadecimal digits; 0 where it is none.
std::uint64_t length_of(std::string_view line) {
  std::uint64_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return 0;
  if (std::from_chars(first.ptr + 1, last, end, 16).ec != std::errc() || end < begin) return 0;
  return end - begin;
}

}  // namespace

std::optional<std::uint64_t> managed_in(std::istream& maps) {
  std::uint64_t bytes = 0;
  std::size_t read = 0;
  for (std::string line; std::getline(maps, line);) {
    read += line.size() + 1;
    if (read > longest_list) return std::nullopt;
    if (line.find(device_file) != std::string::npos) bytes += length_of(line);
  }
  return bytes;
}

ManagedMemory managed_memory_of(pid_t process, std::uint64_t at_most) {
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  errno = 0;
  std::ifstream maps(path);
  if (!maps) {
    const int why = errno;
    if (why == ENOENT || why == ESRCH) return {};
    return {0, path + ": " + std::strerror(why)};
  }
  return {managed_in(maps).value_or(at_most), ""};
}

}  // namespace host::broker
