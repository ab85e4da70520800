// Parses the forms that image.h lists from the outside in. Each level reads only its own span, and passes a smaller
// span to the next level.
#include "host/simgpu/image/image.h"

#include <elf.h>

#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>

#include "host/simgpu/image/decompress.h"
#include "host/simgpu/image/device_names.h"
#include "host/simgpu/image/linked.h"
#include "ring/abi/image.h"

namespace simgpu {
namespace {

// Only the author of a program can follow this advice. A user of NVIDIA's libraries cannot.
constexpr const char* no_ptx_hint =
    "the simulated GPU runs PTX and no machine code. Build a program of your own with PTX, for example by -gencode "
    "arch=compute_75,code=compute_75. A library that ships machine code alone, as cuBLAS, cuFFT and cuDNN do, needs a "
    "real GPU";

struct Entry {
  cuabi::EntryHeader header;
  std::span<const std::byte> payload;
};

// Removes the first entry from `rest`; returns nullopt if the entry does not lie within `rest`.
std::optional<Entry> take_entry(std::span<const std::byte>& rest) {
  Entry entry;
  if (rest.size() < sizeof entry.header) return std::nullopt;
  std::memcpy(&entry.header, rest.data(), sizeof entry.header);
  const std::size_t header_size = entry.header.header_size;
  if (header_size < sizeof entry.header || header_size > rest.size()) return std::nullopt;
  if (entry.header.payload_size > rest.size() - header_size) return std::nullopt;
  entry.payload = rest.subspan(header_size, entry.header.payload_size);
  rest = rest.subspan(header_size + entry.header.payload_size);
  return entry;
}

bool runs_here(const cuabi::EntryHeader& header) {
  return header.kind == cuabi::entry_ptx && header.sm <= device_sm &&
         (header.flags & (cuabi::entry_exact | cuabi::entry_family)) == 0;
}

std::optional<std::string> unpack(const Entry& entry) {
  const cuabi::EntryHeader& header = entry.header;
  if ((header.flags & (cuabi::entry_zstd | cuabi::entry_lz4)) == 0)
    return std::string(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
  if (header.compressed_size > entry.payload.size()) return std::nullopt;
  const auto exact = entry.payload.first(header.compressed_size);
  return (header.flags & cuabi::entry_zstd) != 0 ? unpack_zstd(exact, header.plain_size)
                                                 : unpack_lz4(exact, header.plain_size);
}

ImageTexts refused(CUresult code, std::string why) { return {.code = code, .ptx = {}, .log = std::move(why)}; }

ImageTexts read_text(const char* text);

// Appends an entry to a list for the log, such as "cubin sm_90, cubin sm_100a".
void name_entry(std::string& list, const cuabi::EntryHeader& header) {
  if (!list.empty()) list += ", ";
  switch (header.kind) {
    case cuabi::entry_ptx: list += "PTX compute_"; break;
    case cuabi::entry_cubin: list += "cubin sm_"; break;
    case cuabi::entry_lto: list += "LTO-IR lto_"; break;
    default: list += "kind " + std::to_string(header.kind) + " for "; break;
  }
  list += std::to_string(header.sm);
  if ((header.flags & cuabi::entry_exact) != 0) list += 'a';
  if ((header.flags & cuabi::entry_family) != 0) list += 'f';
}

// Reads the image to which a wrapper points. This image must not be another wrapper, so the recursion ends.
ImageTexts read_pointed(const void* image) {
  if (image == nullptr || cuabi::image_kind(image) == cuabi::ImageKind::Wrapper)
    return refused(CUDA_ERROR_INVALID_IMAGE, "the fat binary's wrapper points to no image");
  return read_image(image);
}

ImageTexts read_wrapper(const void* image) {
  cuabi::ImageWrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  if (wrapper.version != 2 || wrapper.more == nullptr) return read_pointed(wrapper.data);
  // The linked container holds no PTX, but the parts from before linking do. A part without PTX for this device is
  // skipped, as libcudadevrt's is for newer GPUs. If the program needs such a part, linking reports the missing name.
  ImageTexts all;
  for (const void* const* part = wrapper.more; *part != nullptr; ++part) {
    ImageTexts one = read_pointed(*part);
    if (one.code != CUDA_SUCCESS && one.code != CUDA_ERROR_NO_BINARY_FOR_GPU) return one;
    for (std::string& text : one.ptx) all.ptx.push_back(std::move(text));
    if (!one.log.empty()) all.log += one.log + "\n";
  }
  if (!all.ptx.empty()) return all;
  if (!all.log.empty()) return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, all.log);
  return read_pointed(wrapper.data);
}

ImageTexts read_elf(const void* image) {
  constexpr unsigned machine_cuda = 190;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (is_linked(image)) return read_linked(image);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine_cuda)
    return refused(CUDA_ERROR_INVALID_IMAGE, "the image is an ELF file, but not for a GPU");
  return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, std::string("the image is a cubin; ") + no_ptx_hint);
}

// Skips blanks and comments, without reading beyond the terminating NUL.
const char* skip_blanks(const char* text) {
  for (;;) {
    if (std::isspace(static_cast<unsigned char>(*text)) != 0) {
      ++text;
    } else if (text[0] == '/' && text[1] == '/') {
      while (*text != '\0' && *text != '\n') ++text;
    } else if (text[0] == '/' && text[1] == '*') {
      const char* end = std::strstr(text + 2, "*/");
      if (end == nullptr) return text;
      text = end + 2;
    } else {
      return text;
    }
  }
}

ImageTexts read_text(const char* text) {
  if (!is_ptx(text))
    return refused(CUDA_ERROR_INVALID_IMAGE, "the image is neither a fat binary nor a cubin nor PTX text");
  return {.code = CUDA_SUCCESS, .ptx = {std::string(text)}, .log = {}};
}

}  // namespace

bool is_ptx(const char* text) { return std::strncmp(skip_blanks(text), ".version", 8) == 0; }

ImageTexts read_container(std::span<const std::byte> bytes) {
  cuabi::ContainerHeader header;
  if (bytes.size() < sizeof header) return refused(CUDA_ERROR_INVALID_IMAGE, "the fat binary ends within its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != cuabi::container_magic || header.header_size < sizeof header ||
      header.header_size > bytes.size() || header.size != bytes.size() - header.header_size)
    return refused(CUDA_ERROR_INVALID_IMAGE, "the fat binary's header is damaged");

  std::string seen;
  std::optional<Entry> best;
  for (std::span<const std::byte> rest = bytes.subspan(header.header_size); !rest.empty();) {
    const std::optional<Entry> entry = take_entry(rest);
    if (!entry) return refused(CUDA_ERROR_INVALID_IMAGE, "an entry of the fat binary reaches beyond its end");
    name_entry(seen, entry->header);
    if (runs_here(entry->header) && (!best || entry->header.sm > best->header.sm)) best = entry;
  }
  if (!best)
    return refused(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "the fat binary holds " + (seen.empty() ? std::string("nothing") : seen) + "; " + no_ptx_hint);
  std::optional<std::string> text = unpack(*best);
  if (!text) return refused(CUDA_ERROR_INVALID_IMAGE, "a compressed entry of the fat binary is damaged");
  return read_text(text->c_str());
}

ImageTexts read_image(const void* image) {
  switch (cuabi::image_kind(image)) {
    case cuabi::ImageKind::Wrapper: return read_wrapper(image);
    case cuabi::ImageKind::Container: {
      const std::size_t size = cuabi::image_size(image);
      if (size == 0) return refused(CUDA_ERROR_INVALID_IMAGE, "the fat binary's header is damaged");
      return read_container({static_cast<const std::byte*>(image), size});
    }
    case cuabi::ImageKind::Elf: return read_elf(image);
    case cuabi::ImageKind::Text: return read_text(static_cast<const char*>(image));
  }
  return refused(CUDA_ERROR_INVALID_IMAGE, "the image is of no known form");
}

}  // namespace simgpu
