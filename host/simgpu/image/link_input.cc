// A library is an archive of objects. An object has sections that hold fat binary containers, one after another.
#include "host/simgpu/image/link_input.h"

#include <ar.h>
#include <elf.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "ring/abi/image.h"

namespace simgpu {
namespace {

using Bytes = std::span<const std::byte>;

ImageTexts refused(CUresult code, std::string why) { return {.code = code, .ptx = {}, .log = std::move(why)}; }

template <class T>
bool read(Bytes from, std::uint64_t offset, T& into) {
  if (offset > from.size() || sizeof into > from.size() - offset) return false;
  std::memcpy(&into, from.data() + offset, sizeof into);
  return true;
}

std::optional<Bytes> part(Bytes from, std::uint64_t offset, std::uint64_t size) {
  if (offset > from.size() || size > from.size() - offset) return std::nullopt;
  return from.subspan(offset, size);
}

ImageTexts read_ptx(Bytes data) {
  const auto* const start = reinterpret_cast<const char*>(data.data());
  std::string text(start, strnlen(start, data.size()));
  if (!is_ptx(text.c_str())) return refused(CUDA_ERROR_INVALID_IMAGE, "no PTX text");
  return {.code = CUDA_SUCCESS, .ptx = {std::move(text)}, .log = {}};
}

// Adds the texts of one image; returns false if the image is damaged. An image without code for this device is skipped:
// if the program needs such an image, linking reports the missing name.
bool add(ImageTexts& all, ImageTexts one) {
  if (one.code != CUDA_SUCCESS && one.code != CUDA_ERROR_NO_BINARY_FOR_GPU) {
    all = std::move(one);
    return false;
  }
  for (std::string& text : one.ptx) all.ptx.push_back(std::move(text));
  if (!one.log.empty()) all.log += one.log + "\n";
  return true;
}

bool add_containers(ImageTexts& all, Bytes section) {
  while (section.size() >= sizeof(cuabi::ContainerHeader)) {
    cuabi::ContainerHeader header;
    read(section, 0, header);
    if (header.magic == 0) {  // padding
      section = section.subspan(alignof(cuabi::ContainerHeader));
      continue;
    }
    const std::size_t size = cuabi::image_kind(section) == cuabi::ImageKind::Container ? cuabi::image_size(section) : 0;
    if (size == 0) return all = refused(CUDA_ERROR_INVALID_IMAGE, "a fat binary in the object is damaged"), false;
    if (!add(all, read_container(section.first(size)))) return false;
    section = section.subspan(size);
  }
  return true;
}

bool holds_device_code(std::string_view section) { return section == ".nv_fatbin" || section == "__nv_relfatbin"; }

std::string_view name_at(Bytes names, std::uint64_t offset) {
  if (offset >= names.size()) return {};
  const auto* const text = reinterpret_cast<const char*>(names.data() + offset);
  return {text, strnlen(text, names.size() - offset)};
}

std::optional<Bytes> section_at(Bytes object, const Elf64_Ehdr& header, unsigned index, Elf64_Shdr& section) {
  if (!read(object, header.e_shoff + std::uint64_t{index} * sizeof section, section)) return std::nullopt;
  if (section.sh_type == SHT_NOBITS) return Bytes();
  return part(object, section.sh_offset, section.sh_size);
}

// Returns false if the object is damaged.
bool add_object(ImageTexts& all, Bytes object) {
  const auto no_object = [&] { return all = refused(CUDA_ERROR_UNKNOWN, "no object file"), false; };
  Elf64_Ehdr header;
  if (!read(object, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > object.size())
    return no_object();
  Elf64_Shdr section;
  const std::optional<Bytes> names = section_at(object, header, header.e_shstrndx, section);
  if (!names) return no_object();
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const std::optional<Bytes> bytes = section_at(object, header, i, section);
    if (!bytes) return no_object();
    if (holds_device_code(name_at(*names, section.sh_name)) && !add_containers(all, *bytes)) return false;
  }
  return true;
}

// Skips members without device code: the symbol table, the table of long names, and objects with host code only.
bool add_member(ImageTexts& all, Bytes member) {
  std::uint32_t magic = 0;
  if (!read(member, 0, magic) || magic != cuabi::elf_magic) return true;
  return add_object(all, member);
}

std::optional<std::size_t> size_of(const ar_hdr& member) {
  const std::string_view digits(member.ar_size, sizeof member.ar_size);
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || std::memcmp(member.ar_fmag, ARFMAG, sizeof member.ar_fmag) != 0) return std::nullopt;
  return size;
}

bool add_library(ImageTexts& all, Bytes library) {
  const auto no_library = [&] { return all = refused(CUDA_ERROR_UNKNOWN, "no library of object files"), false; };
  if (library.size() < SARMAG || std::memcmp(library.data(), ARMAG, SARMAG) != 0) return no_library();
  if (library.size() == SARMAG) return all = refused(CUDA_ERROR_INVALID_IMAGE, "a library of nothing"), false;
  for (std::size_t at = SARMAG; at < library.size();) {
    ar_hdr header;
    const std::optional<std::size_t> size = read(library, at, header) ? size_of(header) : std::nullopt;
    const std::optional<Bytes> member = size ? part(library, at + sizeof header, *size) : std::nullopt;
    if (!member) return no_library();
    if (!add_member(all, *member)) return false;
    at += sizeof header + *size + *size % 2;  // members begin at even offsets
  }
  return true;
}

ImageTexts of_parts(bool (*add_all)(ImageTexts&, Bytes), Bytes data) {
  ImageTexts all;
  if (!add_all(all, data) || !all.ptx.empty()) return all;
  return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, all.log.empty() ? "there is no device code in it" : all.log);
}

// Reads a fat binary. As in the driver, a PTX text is accepted as well.
ImageTexts read_fat_binary(Bytes data) {
  switch (cuabi::image_kind(data)) {
    // A wrapper is a form that programs have in memory. As in a module load, its pointer may be followed.
    case cuabi::ImageKind::Wrapper:
      if (data.size() < sizeof(cuabi::ImageWrapper)) break;
      return read_image(data.data());
    case cuabi::ImageKind::Container:
      if (cuabi::image_size(data) == 0) break;
      return read_container(data.first(cuabi::image_size(data)));
    default: return read_ptx(data);
  }
  return refused(CUDA_ERROR_INVALID_IMAGE, "no fat binary");
}

ImageTexts read_cubin(Bytes data) {
  if (cuabi::image_kind(data) != cuabi::ImageKind::Elf || data.size() < sizeof(Elf64_Ehdr))
    return refused(CUDA_ERROR_INVALID_IMAGE, "no cubin");
  return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, "cubins cannot be linked: the simulated GPU runs PTX");
}

}  // namespace

ImageTexts read_link_input(CUjitInputType type, std::span<const std::byte> data) {
  switch (type) {
    case CU_JIT_INPUT_PTX: return read_ptx(data);
    case CU_JIT_INPUT_CUBIN: return read_cubin(data);
    case CU_JIT_INPUT_FATBINARY: return read_fat_binary(data);
    case CU_JIT_INPUT_OBJECT: return of_parts(add_object, data);
    case CU_JIT_INPUT_LIBRARY: return of_parts(add_library, data);
    default: break;
  }
  return refused(CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
                 "NVVM's intermediate code cannot be linked: the simulated GPU runs PTX");
}

}  // namespace simgpu
