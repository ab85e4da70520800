// A linked image consists of an ELF header, the texts, and a section table with the offset of each text.
#include "host/simgpu/image/linked.h"

#include <elf.h>

#include <cstring>

#include "ring/abi/image.h"

namespace simgpu {
namespace {

// The magic word occupies e_ident from EI_ABIVERSION on. Its last character is the version of the format.
constexpr char magic[] = {'i', 'v', 's', 'i', 'm', 'p', 't', '1'};
static_assert(EI_ABIVERSION + sizeof magic == EI_NIDENT);

Elf64_Ehdr header_for(std::size_t texts, std::size_t table_at) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_OSABI] = ELFOSABI_STANDALONE;
  std::memcpy(header.e_ident + EI_ABIVERSION, magic, sizeof magic);
  header.e_type = ET_EXEC;
  header.e_machine = EM_NONE;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = table_at;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(texts + 1);
  return header;
}

ImageTexts damaged() {
  return {.code = CUDA_ERROR_INVALID_IMAGE, .ptx = {}, .log = "the linked image of the simulated GPU is damaged"};
}

}  // namespace

std::vector<std::byte> write_linked(std::span<const std::string> texts) {
  std::vector<Elf64_Shdr> sections(1);
  std::size_t end = sizeof(Elf64_Ehdr);
  for (const std::string& text : texts) {
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = end;
    section.sh_size = text.size() + 1;
    section.sh_addralign = 1;
    sections.push_back(section);
    end += section.sh_size;
  }
  const std::size_t table_at = (end + alignof(Elf64_Shdr) - 1) & ~(alignof(Elf64_Shdr) - 1);
  const Elf64_Ehdr header = header_for(texts.size(), table_at);
  std::vector<std::byte> image(table_at + sections.size() * sizeof(Elf64_Shdr));
  std::memcpy(image.data(), &header, sizeof header);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::memcpy(image.data() + sections[i + 1].sh_offset, texts[i].c_str(), texts[i].size() + 1);
  }
  std::memcpy(image.data() + table_at, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return image;
}

bool is_linked(const void* elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf, sizeof header);
  return header.e_machine == EM_NONE && std::memcmp(header.e_ident + EI_ABIVERSION, magic, sizeof magic) == 0;
}

ImageTexts read_linked(const void* elf) {
  const auto* const bytes = static_cast<const std::byte*>(elf);
  // a valid size means that the table and each section lie within the image
  if (cuabi::image_size(elf) == 0) return damaged();
  Elf64_Ehdr header;
  std::memcpy(&header, elf, sizeof header);
  ImageTexts texts;
  for (unsigned i = 1; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
    const auto* const text = reinterpret_cast<const char*>(bytes + section.sh_offset);
    if (section.sh_type != SHT_PROGBITS || section.sh_size == 0 ||
        strnlen(text, section.sh_size) != section.sh_size - 1)
      return damaged();
    texts.ptx.emplace_back(text, section.sh_size - 1);
  }
  if (texts.ptx.empty()) return damaged();
  return texts;
}

}  // namespace simgpu
