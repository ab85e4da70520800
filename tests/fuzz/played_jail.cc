#include "tests/fuzz/played_jail.h"

#include "host/jail/landlock.h"
#include "host/jail/namespaces.h"
#include "host/jail/privileges.h"
#include "host/jail/seccomp.h"

fuzz::PlayedJail fuzz::played_jail;

namespace host::jail {
namespace {

Result play(Layer layer) {
  fuzz::PlayedJail& jail = fuzz::played_jail;
  const auto bit = static_cast<std::uint32_t>(layer);
  jail.in_order = jail.in_order && (jail.asked & bit) == 0 && !jail.closed();
  Result result{layer, jail.missing(layer)};
  jail.asked |= bit;
  if (result.active()) jail.holding |= bit;
  return result;
}

}  // namespace

Result apply_namespaces(const std::vector<std::string>&) { return play(Layer::Namespaces); }
Result apply_no_new_privileges() { return play(Layer::NoNewPrivileges); }
Result apply_limits(unsigned) { return play(Layer::Limits); }
Result apply_user(uid_t, gid_t) { return play(Layer::User); }
Result apply_landlock(const LandlockPaths&) { return play(Layer::Landlock); }
Result apply_seccomp(Requests, std::size_t, int* listener) {
  if (listener != nullptr) *listener = -1;
  return play(Layer::Seccomp);
}
bool list_in_force() { return false; }
std::string kernel_driver(const std::string&) { return std::string(recorded_driver); }
Choice choose_requests(bool, bool, const std::string&, std::uint32_t) { return {Requests::None, {}}; }

}  // namespace host::jail
