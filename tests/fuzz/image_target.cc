// Images from a guest: the worker's checks before a driver gets an image, and then the simulated GPU's reading of
// images that pass. Each image is in memory of exactly its size; a text gets the worker's NUL.
#include "host/simgpu/image/image.h"

#include <memory>
#include <vector>

#include "ring/abi/image.h"
#include "tests/fuzz/input.h"

namespace {

using Bytes = std::span<const std::byte>;

// A copy in memory of exactly its size.
struct Exact {
  explicit Exact(Bytes bytes) : size(bytes.size()), memory(new std::byte[bytes.size()]) {
    if (size != 0) std::memcpy(memory.get(), bytes.data(), size);
  }
  Bytes bytes() const { return {memory.get(), size}; }
  std::size_t size;
  std::unique_ptr<std::byte[]> memory;
};

void check(const simgpu::ImageTexts& texts) {
  const bool taken = texts.code == CUDA_SUCCESS;
  fuzz::require(taken != texts.ptx.empty(), "texts come with success and with nothing else");
  fuzz::require(taken || !texts.log.empty(), "a refusal says why");
}

// Checks a part as LoadRequest (host/untrusted/calls/image.cc) does before it passes the part to a driver.
bool may_pass(Bytes part) {
  switch (cuabi::image_kind(part)) {
    case cuabi::ImageKind::Wrapper: return false;
    case cuabi::ImageKind::Text: return true;
    default: return cuabi::image_size(part) != 0;
  }
}

void read_alone(Bytes part) {
  std::vector<std::byte> with_nul(part.begin(), part.end());
  with_nul.resize(part.size() + (cuabi::image_kind(part) == cuabi::ImageKind::Text ? 4 : 0));
  const Exact image(with_nul);
  check(simgpu::read_image(image.memory.get()));
}

// Reads the two parts of a version-2 wrapper. The first two bytes determine where the input is cut.
void read_wrapped(Bytes all) {
  if (all.size() < 2) return;
  const auto cut = std::min(all.size() - 2, static_cast<std::size_t>(all[0]) << 8 | static_cast<std::size_t>(all[1]));
  const Bytes first = all.subspan(2, cut), second = all.subspan(2 + cut);
  if (!may_pass(first) || !may_pass(second)) return;
  std::vector<std::byte> a(first.begin(), first.end()), b(second.begin(), second.end());
  a.resize(a.size() + 8), b.resize(b.size() + 8);
  const void* more[] = {b.data(), nullptr};
  const cuabi::ImageWrapper wrapper{cuabi::wrapper_magic, 2, a.data(), more};
  check(simgpu::read_image(&wrapper));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Exact exact(std::as_bytes(std::span(data, size)));
  const std::size_t length = cuabi::image_size(exact.bytes());
  fuzz::require(length <= size, "an image of %zu bytes is %zu long", size, length);
  check(simgpu::read_container(exact.bytes()));
  if (may_pass(exact.bytes())) read_alone(exact.bytes());
  read_wrapped(exact.bytes());
  return 0;
}
