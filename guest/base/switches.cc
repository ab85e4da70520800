#include "guest/base/switches.h"

#include <cstdlib>
#include <string_view>

#include "guest/base/host_patience.h"
#include "guest/base/log.h"

namespace guest {
namespace {

void switch_off(Switches& s, std::string_view name) {
#define X(field, help) \
  if (name == #field) return void(s.field = false);
  IVGPU_SWITCHES(X)
#undef X
  log(Level::Warn, "IVGPU_OFF: there is no switch %.*s", static_cast<int>(name.size()), name.data());
}

bool read_managed() {
  const char* value = std::getenv("IVGPU_MANAGED");
  const std::string_view given = value != nullptr ? value : "";
  if (given == "exclusive") return true;
  if (!given.empty()) log(Level::Warn, "IVGPU_MANAGED=%s is not known; it may be exclusive", value);
  return false;
}

}  // namespace

Switches read_switches() {
  Switches s;
  const char* value = std::getenv("IVGPU_OFF");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (const std::string_view name = rest.substr(0, comma); !name.empty()) switch_off(s, name);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return s;
}

bool managed_is_exclusive() {
  static const bool exclusive = read_managed();
  return exclusive;
}

unsigned host_patience() {
  constexpr unsigned usual = 7;
  const HostPatience given;
  const std::optional<unsigned> questions = given.questions();
  if (given.text != nullptr && !questions)
    log(Level::Warn, "IVGPU_HOST_PATIENCE=%s is no number from 1 to %u; it is %u", given.text, HostPatience::most,
        usual);
  return questions.value_or(usual);
}

}  // namespace guest
