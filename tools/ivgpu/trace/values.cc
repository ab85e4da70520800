#include "tools/ivgpu/trace/values.h"

#include <cstdio>
#include <cstring>

#include "ring/api/id.h"

namespace ivgpu::trace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
    if (c >= ' ' && c < 0x7f && c != '\\')
      out += c;
    else
      out += code;
  }
  return out;
}

std::string id_text(std::uint64_t value) {
  if (value == 0) return "0";
  if (value == 1) return "legacy";
  if (value == 2) return "per-thread";
  const api::Id id = api::Id::of(value);
  if (id.kind == api::Handle::None || id.index == 0) return hex(value);
  const std::string generation = id.generation == 0 ? "" : "." + std::to_string(id.generation);
  return std::string(api::kind_of(id.kind).text) + "#" + std::to_string(id.index) + generation;
}

std::string words_text(std::string_view bytes, bool whole) {
  std::string text = "[";
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 8))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
    text += (text.size() == 1 ? "" : " ") + hex(word);
  }
  return text + (whole ? "]" : " ...]");
}

std::string layout_text(Kept& in, std::uint64_t count) {
  std::string text;
  std::optional<std::uint64_t> place;  // offset and size, 32 bits each
  for (; count != 0 && (place = in.word()); --count)
    text += (text.empty() ? "[" : " ") + std::to_string(*place & 0xffff'ffff) + "+" + std::to_string(*place >> 32);
  if (text.empty()) text = "[";
  return text + (count == 0 ? "]" : text.size() == 1 ? "...]" : " ...]");
}

std::string text_of(Kept& in, std::uint64_t length) {
  std::string_view text = in.bytes(length);
  const bool whole = text.size() == length;
  if (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return "\"" + escaped(text) + (whole ? "\"" : "\"...");
}

}  // namespace ivgpu::trace
