// The layers that take rights away from the process as such: no_new_privs, limits, user and capabilities.
// Called by a process with one thread, before a driver is loaded.
#pragma once

#include <sys/types.h>

#include "host/jail/layer.h"

namespace host::jail {

// No execve ever gives a right back; a precondition of Landlock and seccomp without privileges.
Result apply_no_new_privileges();

// No core file (it would hold a guest's memory), a bounded number of descriptors, and a bounded number of threads if
// `max_threads` is not 0. The kernel counts threads per user over the whole machine, so such a bound is for a user that
// runs nothing else; processes are refused by seccomp, which cannot count. Memory has no limit here: a CUDA process
// reserves hundreds of GB of addresses, all of which RLIMIT_AS and RLIMIT_DATA count, with memory behind them or
// without.
Result apply_limits(unsigned max_threads);

// As root: becomes uid/gid without supplementary groups. Otherwise the user stays. Either way no capability is left.
// The kernel forgets PR_SET_PDEATHSIG here, so the caller sets it afterwards.
Result apply_user(uid_t uid, gid_t gid);

}  // namespace host::jail
