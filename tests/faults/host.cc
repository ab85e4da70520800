#include "tests/faults/host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/deadline.h"
#include "tests/unit/process_life.h"
#include "tools/ivgpu/support/deaths.h"

namespace faults {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::size_t descriptors_per_connection = 3;  // socket, doorbell, and the process
// Allows for the growth of the log's and the allocator's buffers. A leak would exceed this size over the rounds.
constexpr std::size_t memory_slack_kib = 8 << 10;
constexpr std::size_t block = 512, region_slack = (1 << 20) / block;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> names_in(const fs::path& folder, const std::string& part) {
  std::set<std::string> names;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder, gone))
    if (const std::string name = entry.path().filename(); name.find(part) != std::string::npos) names.insert(name);
  return names;
}

}  // namespace

long long now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void expect_no_other_signal(const std::string& who, int code, int sent) {
  if (const std::string death = ivgpu::death_of(who, code, sent); !death.empty())
    throw Failure(death + ", which the test has not sent");
}

Host::Host(const Paths& paths) : paths_(paths) {
  std::ofstream(folder_.path() / "ivgpud.toml")
      << "[broker]\nlog_level = \"debug\"\nruntime_dir = \"" << folder_.path().string() << "\"\n"
      << "[gpu]\nlibrary = \"sim\"\n"
      << "[defaults]\nregion_size = \"256MiB\"\nslots = 4\nstarts_per_second = 1000\nstart_burst = 1000\n"
      << "[vm." << local_vm << "]\n[vm." << guest_vm << "]\n";
  setenv("IVGPU_SIM_MEMORY", "256M", 1);
  start();
}

Host::~Host() = default;

void Host::start() {
  ivgpu::FdPair ready = ivgpu::make_pipe_to_us();
  const ivgpu::Fd log(open((folder_.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const ivgpu::Fd last(open(last_status().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  process_.emplace(ivgpu::Command{
      .argv = {paths_.ivgpud.string(), "--config", (folder_.path() / "ivgpud.toml").string(), "--ready-fd",
               std::to_string(ready.theirs.get()), "--last-status-fd", std::to_string(last.get())},
      .keep = {ready.theirs.get(), last.get()},
      .out = log.get(),
      .err = log.get()});
  ready.theirs.reset();
  pollfd news{ready.ours.get(), POLLIN, 0};
  char byte;
  if (poll(&news, 1, static_cast<int>(milliseconds(test_deadline).count())) != 1 ||
      read(ready.ours.get(), &byte, 1) != 1)
    throw Failure("ivgpud does not start:\n" + this->log());
  before_.reset();
  oracle_ = {};
}

void Host::end() {
  process_->signal(SIGTERM);
  const std::optional<int> code = process_->wait_for(test_deadline);
  if (!code) throw Failure("ivgpud does not end when asked to");
  expect_no_other_signal("ivgpud", *code, 0);
  if (*code != 0) throw Failure("ivgpud ended with " + std::to_string(*code));
  if (const std::string words = oracle_.last_complaint(text_of(last_status())); !words.empty()) throw Failure(words);
}

std::string Host::log() const { return text_of(folder_.path() / "log"); }

json Host::status() const {
  const std::string path = (folder_.path() / "ivgpud.status").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const ivgpu::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = test_deadline.count(), .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw Failure("the broker's status socket does not answer");
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(socket.get(), bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
  const json status = json::parse(text, nullptr, false);
  if (!status.is_object()) throw Failure("the broker's status is no JSON: " + text);
  return status;
}

pid_t Host::worker_of(const std::string& vm, pid_t program) const {
  const json status = this->status();
  for (const json& v : status["vms"])
    for (const json& slot : v["slots"])
      if (v["name"] == vm && slot.contains("owner") && slot["owner"]["process"] == program && slot.contains("worker"))
        return slot["worker"].get<pid_t>();
  return 0;
}

std::vector<pid_t> Host::workers(const std::string& vm, const std::string& state) const {
  std::vector<pid_t> found;
  const json status = this->status();
  for (const json& v : status["vms"])
    for (const json& slot : v["slots"])
      if (v["name"] == vm && slot["state"] == state && slot.contains("worker"))
        found.push_back(slot["worker"].get<pid_t>());
  return found;
}

void Host::expect_no_worker_died() {
  if (const std::string words = oracle_.complaint(status()); !words.empty()) throw Failure(words);
}

std::set<pid_t> Host::children() const {
  const std::string pid = std::to_string(broker());
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::set<pid_t> all;
  for (pid_t child; file >> child;) all.insert(child);
  return all;
}

long long Host::kill_broker() {
  expect_no_worker_died();
  const std::set<pid_t> workers = children();
  const long long when = now_ns();
  process_->signal(SIGKILL);
  expect_no_other_signal("ivgpud", process_->wait(), SIGKILL);
  for (const pid_t worker : workers)
    if (!before_deadline([&] { return !broker_test::lives(worker); }))
      throw Failure("worker " + std::to_string(worker) + " outlives its broker");
  return when;
}

// ---- what remains
// ----------------------------------------------------------------------------------------------------

Host::Held Host::held() const {
  Held held;
  const fs::path process = "/proc/" + std::to_string(broker());
  for (const auto& entry : fs::directory_iterator(process / "fd")) {
    ++held.descriptors;
    std::error_code gone;
    struct stat status {};
    if (fs::read_symlink(entry.path(), gone).string().find("memfd:ivgpu") != std::string::npos &&
        stat(entry.path().c_str(), &status) == 0)
      held.region_blocks += static_cast<std::size_t>(status.st_blocks);
  }
  std::istringstream status(text_of(process / "status"));
  for (std::string word; status >> word;)
    if (word == "VmRSS:") status >> held.memory_kib;
  held.shared = names_in("/dev/shm", "ivgpu");
  held.files = names_in(folder_.path(), "");
  return held;
}

std::string Host::leak(std::size_t connections) const {
  const Held now = held();
  const auto grown = [](const char* what, std::size_t from, std::size_t to) {
    return std::string(what) + " went from " + std::to_string(from) + " to " + std::to_string(to);
  };
  const std::size_t descriptors = before_->descriptors + connections * descriptors_per_connection;
  if (now.descriptors != descriptors) return grown("the broker's descriptors", descriptors, now.descriptors);
  if (now.region_blocks > before_->region_blocks + region_slack)
    return grown("the regions' blocks", before_->region_blocks, now.region_blocks);
  if (now.memory_kib > before_->memory_kib + memory_slack_kib)
    return grown("the broker's memory in KiB", before_->memory_kib, now.memory_kib);
  if (now.shared != before_->shared) return grown("names in /dev/shm", before_->shared.size(), now.shared.size());
  if (now.files != before_->files) return grown("files in the runtime folder", before_->files.size(), now.files.size());
  return {};
}

std::string Host::not_settled(std::size_t connections) const {
  const json status = this->status();
  std::size_t connected = 0, workers = 0;
  for (const json& vm : status["vms"]) {
    connected += vm["connections"].get<std::size_t>();
    std::size_t ready = 0;
    for (const json& slot : vm["slots"]) {
      const std::string state = slot["state"];
      ready += state == "ready";
      if (state != "ready" && state != "empty") return "a slot of " + vm["name"].get<std::string>() + " is " + state;
    }
    if (ready != 1) return std::to_string(ready) + " slots of " + vm["name"].get<std::string>() + " are ready";
    workers += ready;
  }
  if (connected != connections) return std::to_string(connected) + " connections";
  if (children().size() != workers) return std::to_string(children().size()) + " workers";
  return {};
}

void Host::expect_settled(std::size_t connections) {
  const auto until = std::chrono::steady_clock::now() + test_deadline;
  for (;;) {
    std::string left = not_settled(connections);
    if (left.empty() && !before_) {
      before_ = held();
      before_->descriptors -= connections * descriptors_per_connection;
    }
    if (left.empty()) left = leak(connections);
    if (left.empty()) return expect_no_worker_died();
    if (std::chrono::steady_clock::now() > until) throw Failure("after the round: " + left);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

}  // namespace faults
