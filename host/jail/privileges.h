// The layers that take rights away from the process as such: no_new_privs, limits, user and capabilities.
// Called by a process with one thread, before a driver is loaded.
#pragma once

#include <sys/types.h>

#include "host/jail/layer.h"

namespace host::jail {

// No execve ever gives a right back; a precondition of Landlock and seccomp without privileges.
Result apply_no_new_privileges();

// No core file (it would hold a guest's memory), a bounded number of descriptors. There is no limit of processes: it
// counts per user over the whole machine, and seccomp refuses processes altogether.
Result apply_limits();

// As root: becomes uid/gid without supplementary groups. Otherwise the user stays. Either way no capability is left.
// The kernel forgets PR_SET_PDEATHSIG here, so the caller sets it afterwards.
Result apply_user(uid_t uid, gid_t gid);

}  // namespace host::jail
