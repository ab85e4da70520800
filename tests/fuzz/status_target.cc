// `ivgpu status` and `ivgpu top` with any document, and an earlier document. The result must be printable lines, not
// much longer than the document, or one error message. The input's first line is the document, and the rest is the
// earlier document.
#include <string>

#include "tests/fuzz/text.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/top/text.h"

namespace {

void show_top(const std::string& now, const std::string& before) {
  try {
    ivgpu::top::View view = ivgpu::top::view_of(now, before.empty() ? now : before, 1);
    ivgpu::top::sort(view, "calls");
    for (const std::string& line : ivgpu::top::as_lines(view, "calls")) fuzz::require_sentence(line);
    fuzz::require_json(ivgpu::top::as_json(view) + "\n");
  } catch (const ivgpu::Error& refused) {
    fuzz::require_sentence(refused.what());
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string both(reinterpret_cast<const char*>(data), size);
  const std::size_t end = both.find('\n');
  const std::string before = end == std::string::npos ? "" : both.substr(end + 1);
  show_top(both.substr(0, end), before);
  try {
    const std::string text = ivgpu::status_as_text(both.substr(0, end), before, before.empty() ? 0 : 1);
    fuzz::require_lines(text);
    // A slot has at least 24 characters in a document, and up to three lines in the text. A byte of a name takes up to
    // four characters.
    fuzz::require(text.size() <= 4096 + 64 * size, "%zu letters for a document of %zu", text.size(), size);
  } catch (const ivgpu::Error& refused) {
    fuzz::require_sentence(refused.what());
  }
  return 0;
}
