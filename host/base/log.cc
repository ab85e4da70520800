#include "host/base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace host::broker {
namespace {

constexpr char priority_error = '3', priority_notice = '5';  // syslog(3)

bool stderr_is_journal() { return is_journal(std::getenv("JOURNAL_STREAM"), STDERR_FILENO); }

char priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical: return '2';
    case spdlog::level::err: return priority_error;
    case spdlog::level::warn: return '4';
    case spdlog::level::info: return '6';
    default: return '7';
  }
}

class Priority : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    for (const char c : {'<', priority_of(message.level), '>'}) line.push_back(c);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Priority>(); }
};

std::shared_ptr<spdlog::logger> log_for_journal() {
  auto log = spdlog::stderr_logger_mt("ivgpud");
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Priority>('*').set_pattern("%*%v");
  log->set_formatter(std::move(formatter));
  return log;
}

std::shared_ptr<spdlog::logger> log_for_people() {
  auto log = spdlog::stderr_color_mt("ivgpud");
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  return log;
}

}  // namespace

bool is_journal(const char* journal_stream, int fd) {
  struct stat status {};
  return journal_stream != nullptr && fstat(fd, &status) == 0 &&
         journal_stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

void open_log(const std::string& level) {
  const auto log = stderr_is_journal() ? log_for_journal() : log_for_people();
  log->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(log);
}

void print_sentence(const std::string& sentence, bool error) {
  const std::string priority = stderr_is_journal() ? fmt::format("<{}>", error ? priority_error : priority_notice) : "";
  fmt::print(stderr, "{}ivgpud: {}\n", priority, sentence);
}

}  // namespace host::broker
