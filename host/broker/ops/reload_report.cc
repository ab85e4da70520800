#include "host/broker/ops/reload_report.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "host/base/hostile_text.h"

namespace host::broker {

void ReloadReport::begin() {
  askers_ = std::exchange(next_, {});
  lines_ = 0;
}

void ReloadReport::info(const std::string& line) {
  spdlog::info("{}", line);
  reply("info", line);
}

void ReloadReport::error(const std::string& line) {
  spdlog::error("{}", line);
  reply("error", line);
}

void ReloadReport::reply(const char* kind, const std::string& line) {
  ++lines_;
  for (const auto& asker : askers_) asker.reply(std::string(kind) + ' ' + escaped(line) + '\n');
}

void ReloadReport::finish() {
  if (lines_ == 0) info("the file says nothing new");
  for (const auto& asker : std::exchange(askers_, {})) {
    asker.reply("done\n");
    asker.end();
  }
}

void ReloadReport::forget_askers() {
  askers_.clear();
  next_.clear();
}

}  // namespace host::broker
