// Gives each VM's workers their own user. [broker] worker_uids is a range of IDs; the n-th VM of the file gets the n-th
// as user and group. The host's kernel then separates VMs even if all other layers fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/result.h"
#include "host/broker/config/config.h"

namespace host::broker {

struct UserRange {
  std::int64_t first, last;
  bool has(std::int64_t id) const { return first <= id && id <= last; }
};

// Parses "200000-200063".
std::optional<UserRange> to_user_range(std::string_view text);

struct UserWish {
  VmOptions* vm;
  bool uid_given, gid_given;  // the file sets the ID, which then stays
};

// An error, one sentence, if worker_uids is set and this process is not root.
Result<void> may_give_users(const BrokerOptions& broker);

// `text` is the range, "" for none; `wishes` are in the order of the file. An error, one sentence, if an ID conflicts
// or the range is too small.
Result<void> give_users(const std::string& text, const std::vector<UserWish>& wishes);

// Called after give_users() on a reload: VMs of `running` keep their IDs, wherever they stand in the file. New VMs get
// free IDs.
Result<void> keep_users(const std::string& text, const std::vector<VmOptions>& running, std::vector<VmOptions>& wanted);

// Sets VmOptions::own_uid of each VM.
void note_own_users(std::vector<VmOptions>& vms);

}  // namespace host::broker
