#include "host/simgpu/vm/form.h"

#include <string>
#include <unordered_map>

namespace simgpu {
namespace {

const std::unordered_map<std::string_view, Word>& words() {
  static const std::unordered_map<std::string_view, Word> map = {
#define X(name, spelling) {spelling, Word::name},
      SIMGPU_WORDS(X)
#undef X
  };
  return map;
}

// Maps a suffix with a sub-space or a cache hint to its plain word. Neither changes the result in the simulation.
std::string_view plain(std::string_view suffix) {
  if (suffix == "L1" || suffix == "L2") return "cache hint";
  const std::size_t colon = suffix.find("::");
  if (colon == std::string_view::npos) return suffix;
  const std::string_view head = suffix.substr(0, colon);
  if (head == "L1" || head == "L2") return "cache hint";
  return head;  // also for shared::cluster: the address determines the block
}

}  // namespace

Word word_of(std::string_view spelling) {
  const auto found = words().find(spelling);
  return found == words().end() ? Word::none : found->second;
}

Form form_of(const ptx::Instruction& instruction) {
  Form form;
  for (const std::string_view suffix : instruction.suffixes) {
    const ptx::Type type = ptx::type_of(suffix);
    const Word word = word_of(plain(suffix));
    if (type != ptx::Type::None && form.type_count < form.types.size()) {
      form.types[form.type_count++] = type;
    } else if (word != Word::none) {
      form.words.set(static_cast<std::size_t>(word));
    } else {
      throw ptx::Error(instruction.line, "opcode " + shown(instruction) + " is not served");
    }
  }
  return form;
}

std::string shown(const ptx::Instruction& instruction) {
  std::string text(instruction.opcode);
  for (const std::string_view suffix : instruction.suffixes) text.append(".").append(suffix);
  return text.substr(0, 120);
}

}  // namespace simgpu
