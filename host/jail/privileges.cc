#include "host/jail/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace host::jail {
namespace {

// The driver has about 60 open descriptors for one GPU. 16 GPUs and the slot's descriptors need fewer than this limit.
constexpr rlim_t max_descriptors = 2048;

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool lower(__rlimit_resource which, rlim_t value) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0) return false;
  limit.rlim_max = std::min(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(which, &limit) == 0;
}

// Clears the bounding set as well, because a process could regain rights from this set through a user namespace.
// Clearing needs CAP_SETPCAP; in a process without CAP_SETPCAP, the set gives no rights.
void drop_bounding_set() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

std::string drop_capabilities() {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) return failed("capset");
  return {};
}

std::string become(uid_t uid, gid_t gid) {
  if (setgroups(0, nullptr) != 0) return failed("setgroups");
  if (setresgid(gid, gid, gid) != 0) return failed("setresgid");
  if (setresuid(uid, uid, uid) != 0) return failed("setresuid");
  return {};
}

}  // namespace

Result apply_no_new_privileges() {
  Result result{Layer::NoNewPrivileges, {}};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) result.missing = failed("prctl");
  return result;
}

Result apply_limits(unsigned max_threads) {
  Result result{Layer::Limits, {}};
  if (!lower(RLIMIT_CORE, 0)) result.missing = failed("RLIMIT_CORE");
  if (!lower(RLIMIT_NOFILE, max_descriptors)) result.missing = failed("RLIMIT_NOFILE");
  if (max_threads != 0 && !lower(RLIMIT_NPROC, max_threads)) result.missing = failed("RLIMIT_NPROC");
  return result;
}

Result apply_user(uid_t uid, gid_t gid) {
  Result result{Layer::User, {}};
  drop_bounding_set();
  if (geteuid() == 0) result.missing = become(uid, gid);
  if (const std::string why = drop_capabilities(); !why.empty() && result.missing.empty()) result.missing = why;
  return result;
}

}  // namespace host::jail
