#include "host/broker/reload_report.h"

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
  say("info", line);
}

void ReloadReport::error(const std::string& line) {
  spdlog::error("{}", line);
  say("error", line);
}

void ReloadReport::say(const char* kind, const std::string& line) {
  ++lines_;
  for (const auto& asker : askers_) asker.say(std::string(kind) + ' ' + escaped(line) + '\n');
}

void ReloadReport::finish() {
  if (lines_ == 0) info("the file says nothing new");
  for (const auto& asker : std::exchange(askers_, {})) {
    asker.say("done\n");
    asker.end();
  }
}

void ReloadReport::forget_askers() {
  askers_.clear();
  next_.clear();
}

}  // namespace host::broker
