#include "host/broker/mps/mps_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "host/base/fd_message.h"
#include "host/base/mark.h"
#include "host/base/process/control.h"
#include "host/base/process/listener.h"

namespace host::broker {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An idle GPU takes seconds to wake.
constexpr auto start_patience = seconds(10);
constexpr auto look_again = milliseconds(20);
// The command `quit` waits for the server, which waits for its clients; the broker's workers have gone by then.
constexpr auto quit_patience = seconds(5), signal_patience = seconds(2);
constexpr int last_patience_ms = 1000;

// The daemon's name as the kernel shows it, cut to 15 letters.
constexpr const char* daemon_comm = "nvidia-cuda-mps";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Reads a process ID from a file; "" if there is none. The workers' user owns the folder, and may put a link, a pipe or
// an endless file there.
std::string process_named_by(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  char text[16];  // 10 digits at most, and a line end
  const ssize_t length = read(file.get(), text, sizeof text);
  const std::string_view all(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const std::string_view number = all.substr(0, all.find('\n'));
  const bool is_one =
      !number.empty() && number.size() <= 10 && number.find_first_not_of("0123456789") == std::string_view::npos;
  return is_one ? std::string(number) : "";
}

// Only root can give a folder to another user.
std::string make_folder(const std::string& path, mode_t mode, uid_t uid, gid_t gid) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fmt::format("{}: {}", path, std::strerror(errno));
  // lstat(): the workers' user may have put a link here.
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return path + ": this is no folder";
  if (chmod(path.c_str(), mode) != 0 || (geteuid() == 0 && lchown(path.c_str(), uid, gid) != 0))
    return fmt::format("{}: {}", path, std::strerror(errno));
  return "";
}

// The first folder of the path that the user may not enter; "" if there is none.
std::string closed_folder(const fs::path& path, uid_t uid, gid_t gid) {
  if (geteuid() != 0) return "";
  fs::path way;
  for (const fs::path& part : path) {
    way /= part;
    struct stat status {};
    if (stat(way.c_str(), &status) != 0) return "";
    const mode_t wanted = status.st_uid == uid ? S_IXUSR : status.st_gid == gid ? S_IXGRP : S_IXOTH;
    if ((status.st_mode & wanted) == 0) return way.string();
  }
  return "";
}

}  // namespace

MpsFolders mps_folders(const std::string& runtime_dir, const std::string& gpu) {
  std::string name = gpu;
  std::replace(name.begin(), name.end(), '/', '_');  // the older form of a MIG device's name contains slashes
  const std::string folder = runtime_dir + "/mps/" + name;
  return {folder, folder + "/pipe", folder + "/log"};
}

MpsDaemon::MpsDaemon(EventLoop& loop, Place place, Events events)
    : loop_(loop),
      place_(std::move(place)),
      folders_(mps_folders(place_.runtime_dir, place_.gpu)),
      events_(std::move(events)),
      store_(place_.store, fs::path(folders_.gpu).filename()) {}

MpsDaemon::~MpsDaemon() {
  for (EventLoop::Id* id : {&start_timer_, &end_timer_}) loop_.forget(*id);
  leave();
  if (!process_) return;
  process_->signal(SIGTERM);
  pollfd gone{process_->process_fd(), POLLIN, 0};
  poll(&gone, 1, last_patience_ms);
}

// ---- folders -------------------------------------------------------------------------------------------------------

// The process of another daemon that runs in this folder, left by a killed broker for example; "" if there is none. A
// zombie still has a name, but an empty command line.
std::string MpsDaemon::living_other() const {
  const std::string process = process_named_by(folders_.pipe + "/nvidia-cuda-mps-control.pid");
  if (process.empty()) return "";
  const std::string proc = "/proc/" + process;
  return first_line(proc + "/comm") == daemon_comm && !first_line(proc + "/cmdline").empty() ? process : "";
}

Result<void> MpsDaemon::prepare() const {
  const auto wrong = [](const std::string& why) { return Error{fmt::format("policy = \"mps\": {}", why)}; };
  if (const auto fits = socket_path_fits(folders_.pipe + "/control_privileged"); !fits)
    return wrong(fits.error().message);
  if (const std::string process = living_other(); !process.empty())
    return wrong(
        fmt::format("an MPS daemon, process {}, has {} already: end it by `echo quit | CUDA_MPS_PIPE_DIRECTORY={} {}`",
                    process, folders_.pipe, folders_.pipe, place_.program));
  std::error_code failed;
  fs::remove_all(folders_.pipe, failed);  // sockets and pipes of a killed daemon
  constexpr mode_t passable = 0711, own = 0700;
  for (const std::string& path : {place_.runtime_dir + "/mps", folders_.gpu})
    if (const std::string why = make_folder(path, passable, geteuid(), getegid()); !why.empty()) return wrong(why);
  for (const std::string& path : {folders_.pipe, folders_.log})
    if (const std::string why = make_folder(path, own, place_.uid, place_.gid); !why.empty()) return wrong(why);
  const std::string closed = closed_folder(folders_.pipe, place_.uid, place_.gid);
  if (closed.empty()) return {};
  return wrong(fmt::format(
      "workers run as user {}, who may not pass {}: chmod o+x {}, or choose another runtime_dir in [broker]",
      place_.uid, closed, closed));
}

// ---- start and restart ---------------------------------------------------------------------------------------------

Helper::Command MpsDaemon::command(std::vector<std::string> arguments, const std::string& input) const {
  arguments.insert(arguments.begin(), place_.program);
  std::vector<std::string> environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C",
                                          "CUDA_VISIBLE_DEVICES=" + place_.gpu,
                                          "CUDA_MPS_PIPE_DIRECTORY=" + folders_.pipe,
                                          "CUDA_MPS_LOG_DIRECTORY=" + folders_.log};
  // In a container the driver's libraries may be outside the loader's folders.
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"))
    environment.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
  return {std::move(arguments), std::move(environment), input, place_.priority};
}

void MpsDaemon::start() {
  given_up_.clear();
  auto process = store_ ? run_kept() : run();
  if (!process) return fail_later("cannot be started: " + process.error().message);
  process_ = *std::move(process);
  look_for_pipe(Clock::now() + start_patience);
}

Helper::Gone MpsDaemon::on_end() {
  return [this](const Helper::Exit& exit) { on_exit(exit); };
}

// In the foreground (-f): the daemon stays a child, whose exit the parent sees.
Result<std::unique_ptr<Helper>> MpsDaemon::run() { return Helper::start(loop_, command({"-f"}, ""), on_end()); }

Helper::Command MpsDaemon::kept_command(int control) const {
  Helper::Command its = command({"-f"}, "");
  const std::string own[] = {place_.supervisor, std::to_string(place_.outlive_ms), std::to_string(place_.priority)};
  its.arguments.insert(its.arguments.begin(), std::begin(own), std::end(own));
  its.passed = {control, place_.life_fd};
  return its;
}

Result<std::unique_ptr<Helper>> MpsDaemon::run_kept() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{fmt::format("socketpair: {}", std::strerror(errno))};
  control_.reset(ends[0]);
  const Fd its_end(ends[1]);
  auto helper = Helper::start(loop_, kept_command(its_end.get()), on_end());
  if (helper && !store_.keep(mark(), control_.get(), (*helper)->output_fd(), (*helper)->process_fd()))
    spdlog::warn("the MPS daemon of {} ends with ivgpud: its record cannot be made: {}", place_.gpu,
                 std::strerror(errno));
  return helper;
}

// A daemon can be adopted only if this has not changed.
std::uint64_t MpsDaemon::mark() const {
  return mark_of(fmt::format("{}\n{}\n{} {}\n", place_.gpu, folders_.pipe, place_.uid, place_.gid));
}

Result<bool> MpsDaemon::adopt() {
  auto taken = store_.take(mark());
  if (!taken) return taken.error();
  if (!*taken) return false;
  MpsStore::Kept& kept = **taken;
  control_ = std::move(kept.control);
  process_ = Helper::adopt(loop_, std::move(kept.output), std::move(kept.process), on_end());
  worker::MemoryMessage words{};
  words.kind = worker::adopt_kind;
  // If the keeper has ended, the loop sees that later.
  send_with_fd(control_.get(), &words, sizeof words, place_.life_fd);
  up_ = has_pipe();
  if (!up_) look_for_pipe(Clock::now() + start_patience);
  return true;
}

void MpsDaemon::fail_later(const std::string& why) {
  start_timer_ = loop_.after(Clock::duration::zero(), [this, why] {
    start_timer_ = 0;
    events_.down(why, false);
  });
}

// The daemon listens once its pipe exists.
bool MpsDaemon::has_pipe() const {
  struct stat status {};
  return lstat((folders_.pipe + "/control").c_str(), &status) == 0;
}

void MpsDaemon::look_for_pipe(Clock::time_point until) {
  start_timer_ = loop_.after(look_again, [this, until] {
    start_timer_ = 0;
    if (has_pipe()) {
      up_ = true;
      return events_.up();
    }
    if (Clock::now() < until) return look_for_pipe(until);
    given_up_ = fmt::format("does not listen after {} s", start_patience.count());
    process_->signal(SIGKILL);
  });
}

void MpsDaemon::on_exit(const Helper::Exit& exit) {
  loop_.forget(start_timer_);
  loop_.forget(end_timer_);
  const std::string word = control_ ? last_word(control_.get()) : "";
  const std::string how = word.empty() ? exit.how : word;
  process_.reset();
  control_.reset();
  store_.forget();
  const bool was_up = std::exchange(up_, false);
  if (ended_) return std::exchange(ended_, nullptr)();
  events_.down((given_up_.empty() ? how : given_up_) + first_words(exit.output), was_up);
}

// ---- questions -----------------------------------------------------------------------------------------------------

void MpsDaemon::ask(const std::string& words, Clock::duration patience, Answer answer) {
  const std::uint64_t number = ++next_question_;
  Question& question = questions_[number];
  question.answer = std::move(answer);
  const auto gone = [this, number](const Helper::Exit& exit) {
    answered(number, exit.good ? std::optional(exit.output) : std::nullopt);
    questions_.erase(number);
  };
  if (auto client = Helper::start(loop_, command({}, words), gone)) question.client = *std::move(client);
  // If the client did not start, the loop's next iteration reports the missing answer.
  const auto wait = question.client ? patience : Clock::duration::zero();
  question.timer = loop_.after(wait, [this, number] {
    Question& late = questions_[number];
    late.timer = 0;
    if (late.client) late.client->signal(SIGKILL);  // kept until it has gone
    answered(number, std::nullopt);
    if (const auto still = questions_.find(number); still != questions_.end() && !still->second.client)
      questions_.erase(still);
  });
}

void MpsDaemon::leave() {
  for (auto& [number, question] : questions_) loop_.forget(question.timer);
  questions_.clear();
}

// At most once for each question.
void MpsDaemon::answered(std::uint64_t question, const std::optional<std::string>& reported) {
  Question& q = questions_[question];
  loop_.forget(q.timer);
  if (const auto answer = std::exchange(q.answer, nullptr)) answer(reported);
}

// ---- end -----------------------------------------------------------------------------------------------------------

void MpsDaemon::end(std::function<void()> done) {
  if (!process_) {
    loop_.forget(start_timer_);
    return done();
  }
  ended_ = std::move(done);
  if (!up_) return signal_next(SIGTERM);
  ask("quit\n", quit_patience, [this](const std::optional<std::string>& reported) {
    if (!reported && process_) signal_next(SIGTERM);
  });
  end_timer_ = loop_.after(quit_patience, [this] {
    end_timer_ = 0;
    signal_next(SIGTERM);
  });
}

void MpsDaemon::signal_next(int number) {
  loop_.forget(end_timer_);
  loop_.forget(start_timer_);
  spdlog::warn("the MPS daemon of {} has not quit: it gets signal {}", place_.gpu, number);
  process_->signal(number);
  if (number == SIGKILL) return;
  end_timer_ = loop_.after(signal_patience, [this] {
    end_timer_ = 0;
    signal_next(SIGKILL);
  });
}

}  // namespace host::broker
