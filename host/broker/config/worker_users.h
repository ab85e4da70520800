// Users of their own for the workers of each VM: [broker] worker_uids is a range of numbers, and the n-th VM of the
// file gets the n-th as its workers' user and group, so that the host's kernel keeps VMs apart where all else has
// failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

struct UserRange {
  std::int64_t first, last;
  bool has(std::int64_t id) const { return first <= id && id <= last; }
};

// "200000-200063".
std::optional<UserRange> to_user_range(std::string_view text);

struct UserWish {
  VmOptions* vm;
  bool uid_given, gid_given;  // by the file; then they stay
};

// Only root can. False where this broker is to and cannot, and `error` is one sentence.
bool may_give_users(const BrokerOptions& broker, std::string& error);

// `text` is the range, "" for none; `wishes` are in the order of the file. False when it cannot be done, and `error` is
// one sentence.
bool give_users(const std::string& text, const std::vector<UserWish>& wishes, std::string& error);

// The same when a file is read again, after give_users(): a VM of `running` keeps the number of the range that it has,
// at any place in the file, and a new one gets a free number.
bool keep_users(const std::string& text, const std::vector<VmOptions>& running, std::vector<VmOptions>& wanted,
                std::string& error);

// Notes for each VM whether its workers' user is its own (VmOptions::own_uid).
void note_own_users(std::vector<VmOptions>& vms);

}  // namespace host::broker
