// The layers that remove the process's own rights: no_new_privs, limits, user and capabilities. The caller must have
// one thread and must not have loaded a driver.
#pragma once

#include <sys/types.h>

#include "host/jail/layer.h"

namespace host::jail {

// After this call, no execve restores a right. Landlock and seccomp without privileges require this layer.
Result apply_no_new_privileges();

// Forbids core files, which would contain a guest's memory. Limits the number of descriptors, and the number of threads
// if `max_threads` is not 0. The kernel counts threads per user over the whole machine, so the limit on threads needs a
// user that runs nothing else. seccomp cannot count, so it refuses all new processes. Memory is not limited here: a
// CUDA process reserves hundreds of GB of addresses, and RLIMIT_AS and RLIMIT_DATA count all of them, used or not.
Result apply_limits(unsigned max_threads);

// As root, becomes uid/gid without supplementary groups; otherwise the user stays. Drops all capabilities in both
// cases. The kernel clears PR_SET_PDEATHSIG in this step, so the caller sets PR_SET_PDEATHSIG afterwards.
Result apply_user(uid_t uid, gid_t gid);

}  // namespace host::jail
