// Text about workers that an operator reads, and that workers' guests may control: a jail's text and counters in `ivgpu
// status`, `ivgpu top` and the metrics; and trace entries in every output of `ivgpu trace`. The whole path is real: the
// code makes and reads the broker's document, and takes sessions from a trace socket and telemetry pages.
//
// The target expects printable text of bounded length, one line per call, and valid JSON. Sanitizers check that the
// code reads no invalid memory.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "host/base/hostile_text.h"
#include "host/broker/ops/metrics.h"
#include "host/broker/ops/status.h"
#include "ring/api/call.h"
#include "ring/api/entry_points.h"
#include "ring/api/id.h"
#include "ring/ops/trace_socket.h"
#include "tests/fuzz/client.h"
#include "tests/fuzz/text.h"
#include "tests/prometheus_text.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/top/text.h"
#include "tools/ivgpu/trace/output.h"
#include "tools/ivgpu/trace/source.h"

namespace {

namespace broker = host::broker;
namespace trace = ivgpu::trace;
using fuzz::require;
using ring::TraceMessage, ring::TraceNews;

// ---- status --------------------------------------------------------------------------------------------------------

std::string some_text(fuzz::Input& in, std::size_t most) {
  const auto bytes = in.take(in.below(most));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

broker::Counters some_counters(fuzz::Input& in) {
  broker::Counters c;
  for (std::uint64_t* counter : {&c.calls, &c.waited, &c.submitted, &c.record_bytes, &c.reply_bytes, &c.to_device,
                                 &c.from_device, &c.device_memory, &c.spun, &c.parked, &c.woken})
    *counter = in.any();
  return c;
}

broker::SlotStatus some_slot(fuzz::Input& in) {
  broker::SlotStatus slot;
  slot.word = {in.number<std::uint32_t>(), static_cast<ring::SlotState>(in.below(7))};
  slot.worker = in.once_in(4) ? 0 : in.number<std::int32_t>();
  // Stores a worker's message as the broker does.
  slot.jail = {in.once_in(2), in.number<std::uint32_t>(), broker::escaped(some_text(in, 120))};
  slot.owner.pid = in.number<std::uint32_t>();
  slot.owner.peer = in.number<std::uint32_t>();
  slot.claimed_for = broker::Clock::duration(in.number<std::int64_t>());
  slot.counters = some_counters(in);
  slot.program = broker::escaped(some_text(in, 24));
  return slot;
}

broker::BrokerStatus some_status(fuzz::Input& in) {
  broker::BrokerStatus status{"0.1.0", "/usr/lib/libcuda.so.1", std::chrono::seconds(5), {}, {}};
  broker::VmStatus vm;
  vm.name = "t", vm.socket = "/run/ivgpu/t.sock", vm.jail = "best-effort";
  vm.ends.signal = in.number(), vm.ends.last_reason = broker::escaped(some_text(in, 120));
  vm.region_bytes = in.any(), vm.slot_bytes = in.any();
  vm.counters = some_counters(in);
  vm.gpu_memory = in.any();
  for (std::size_t n = in.below(4); n > 0; --n) vm.slots.push_back(some_slot(in));
  status.vms.push_back(vm);
  return status;
}

// `ivgpu status` must accept a broker's document, whatever the workers send.
void show_status(fuzz::Input& in) {
  const std::string before = broker::status_as_json(some_status(in));
  const std::string now = broker::status_as_json(some_status(in));
  fuzz::require_json(before);
  for (const std::string& text : {ivgpu::status_as_text(now), ivgpu::status_as_text(now, before, 0.5)}) {
    fuzz::require_lines(text);
    require(text.size() < 16384, "three slots take %zu letters", text.size());
  }
  const ivgpu::top::View view = ivgpu::top::view_of(now, before, 0.5);
  for (const std::string& line : ivgpu::top::as_lines(view, "name")) fuzz::require_sentence(line);
  fuzz::require_json(ivgpu::top::as_json(view) + "\n");
}

// The text of metrics must be valid for Prometheus.
void show_metrics(fuzz::Input& in) {
  const std::string text = broker::metrics_as_text(some_status(in));
  fuzz::require_lines(text);
  try {
    prometheus::read(text);
  } catch (const prometheus::Misfit& misfit) {
    require(false, "%s", misfit.what());
  }
}

// ---- entries of a trace --------------------------------------------------------------------------------------------

std::uint16_t some_call(fuzz::Input& in) {
  static const std::vector<std::uint16_t> known = [] {
    std::vector<std::uint16_t> ids;
    for (const api::EntryPoint& e : api::entry_points)
      if (e.crosses()) ids.push_back(e.id);
    for (const api::SessionCall& c : api::session_calls) ids.push_back(c.id);
    return ids;
  }();
  return in.once_in(16) ? in.number<std::uint16_t>() : known[in.below(known.size())];
}

// `ivgpu trace` learns names from lookups, so this function makes many lookups, with repeated ids.
ring::TraceEntry some_entry(fuzz::Input& in) {
  ring::TraceEntry e{};
  e.begin_ns = in.any(), e.end_ns = in.any(), e.position = in.number();
  e.call = some_call(in);
  e.flags = in.number();
  e.result = in.once_in(4) ? in.number<std::int32_t>() : 0;
  const auto payload = in.take(in.below(sizeof e.payload + 1)), reply = in.take(in.below(sizeof e.reply + 1));
  std::memcpy(e.payload, payload.data(), payload.size());
  std::memcpy(e.reply, reply.data(), reply.size());
  e.payload_bytes = in.once_in(4) ? in.number<std::uint32_t>() : static_cast<std::uint32_t>(payload.size());
  e.reply_bytes = in.once_in(4) ? in.number<std::uint32_t>() : static_cast<std::uint32_t>(reply.size());
  return e;
}

// The bound allows a payload of only escaped bytes, an equally long kernel name, and the text around them.
constexpr std::size_t longest_line = 2048;

// A FILE whose text is checked.
class Printed {
 public:
  Printed() : file_(open_memstream(&text_, &size_)) {}
  ~Printed() { std::fclose(file_), std::free(text_); }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  std::FILE* file() { return file_; }
  std::string_view text() { return std::fflush(file_), std::string_view(text_, size_); }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

// All output forms at once.
class Shown {
 public:
  explicit Shown(fuzz::Input& in)
      : start_ns_(in.any()),
        lines_(lines_to_.file(), start_ns_),
        summary_(summary_to_.file()),
        path_(fuzz::socket_folder() + "/perfetto.json"),
        perfetto_(path_, start_ns_) {}

  void add(const trace::Call& call) {
    const std::size_t before = lines_to_.text().size();
    lines_.add(call);
    const std::string_view line = lines_to_.text().substr(before);
    require(line.size() < longest_line, "a line of %zu letters", line.size());
    require(line.find('\n') == line.size() - 1, "a call is one line");
    summary_.add(call);
    perfetto_.add(call);
    ++calls_;
  }

  void finish() {
    summary_.finish();
    perfetto_.finish();
    fuzz::require_lines(lines_to_.text());
    fuzz::require_lines(summary_to_.text());
    std::ifstream file(path_);
    const auto document = fuzz::require_json(std::string(std::istreambuf_iterator<char>(file), {}));
    std::size_t calls = 0;
    for (const auto& event : document.at("traceEvents")) {
      require(event.at("name").is_string() && event.at("pid").is_number(), "an event of Perfetto's");
      calls += event.at("ph") == "X";
    }
    require(calls == calls_, "%zu calls of %zu are in the file", calls, calls_);
  }

 private:
  const std::uint64_t start_ns_;
  Printed lines_to_, summary_to_;
  trace::Lines lines_;
  trace::Summary summary_;
  const std::string path_;
  trace::Perfetto perfetto_;
  std::size_t calls_ = 0;
};

void show_entries(fuzz::Input& in) {
  const trace::Session session{1, "t", 2, 3, 4};
  trace::KernelNames names;
  Shown shown(in);
  while (!in.empty()) {
    const ring::TraceEntry entry = some_entry(in);
    names.learn(entry);
    shown.add({session, 1, entry, trace::describe(entry, names)});
  }
  shown.finish();
}

// ---- sessions of a socket ------------------------------------------------------------------------------------------

// A worker's memory. All inputs share it, and each writer clears it.
class Telemetry {
 public:
  Telemetry() : fd_(memfd_create("ivgpu-fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    require(ftruncate(fd_.get(), ring::telemetry_bytes) == 0, "a memfd can be made");
    require(fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "a memfd can be sealed");
    void* at = mmap(nullptr, ring::telemetry_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    require(at != MAP_FAILED, "a memfd can be mapped");
    base_ = static_cast<std::byte*>(at);
  }
  int fd() const { return fd_.get(); }
  static Telemetry& one() {
    static Telemetry made;
    return made;
  }

  // Writes mostly valid cells; other cells have a wrong sequence or a wrong length.
  void scribble(fuzz::Input& in) {
    const ring::TelemetryView view(base_);
    const auto channel = static_cast<std::uint32_t>(in.below(ring::max_channels));
    auto& written = view.page().channel[channel].written;
    const std::uint64_t next = written.load();
    const std::uint64_t position = in.once_in(16) ? in.any() : next;
    ring::TraceCell& cell = view.cells(channel)[position & (ring::trace_cells - 1)];
    const ring::TraceEntry entry = some_entry(in);
    std::uint64_t words[ring::TraceCell::words];
    std::memcpy(words, &entry, sizeof words);
    for (std::size_t i = 0; i < std::size(words); ++i) cell.word[i] = words[i];
    cell.sequence = in.once_in(16) ? in.any() : 2 * position + 2;
    written = in.once_in(16) ? in.any() : next + 1;
    touched_.push_back(&cell);
  }
  void clean() {
    for (auto& counters : ring::TelemetryView(base_).page().channel) counters.written = 0;
    for (ring::TraceCell* cell : touched_) cell->sequence = 0;
    touched_.clear();
  }

 private:
  broker::Fd fd_;
  std::byte* base_ = nullptr;
  std::vector<ring::TraceCell*> touched_;
};

TraceMessage some_message(fuzz::Input& in) {
  TraceMessage m{};
  m.magic = in.once_in(32) ? in.number<std::uint32_t>() : ring::trace_magic;
  m.version = ring::telemetry_version;
  m.news = in.once_in(32) ? TraceNews{in.number<std::uint32_t>()} : static_cast<TraceNews>(1 + in.below(3));
  m.slot = in.number();
  m.session = in.below(4);
  m.process = in.number<std::uint32_t>() % 4;
  m.peer = in.number(), m.worker = in.number();
  std::strcpy(m.text, "t");
  return m;
}

void tell(int client, const TraceMessage& message, bool with_memory, std::size_t length) {
  TraceMessage copy = message;
  iovec data{&copy, length};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data, header.msg_iovlen = 1;
  if (with_memory) {
    header.msg_control = control, header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = Telemetry::one().fd();
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  sendmsg(client, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The broker's messages before and after it has listed all existing sessions to its client.
struct Said {
  std::vector<TraceMessage> first, later;
  bool ends_early = false;

  explicit Said(fuzz::Input& in) {
    for (std::size_t n = in.below(6); n > 0; --n) first.push_back(some_message(in));
    ends_early = in.once_in(16);
    if (!ends_early) {
      first.push_back({.magic = ring::trace_magic, .version = ring::telemetry_version, .news = TraceNews::Listed});
    }
    for (std::size_t n = in.below(6); n > 0; --n) later.push_back(some_message(in));
  }
  static void tell_all(int client, const std::vector<TraceMessage>& messages) {
    for (const TraceMessage& m : messages) tell(client, m, m.news == TraceNews::Begins, sizeof m);
  }
};

void show_sessions(fuzz::Input& in) {
  const std::string folder = fuzz::socket_folder();
  static const int listener = [&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder + "/" + ring::trace_socket_name).copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 4) == 0, "a socket");
    return fd;
  }();
  const Said said(in);
  const trace::Filter filter{.vm = "", .slot = ring::any_slot, .process = static_cast<std::uint32_t>(in.below(3))};
  Telemetry& telemetry = Telemetry::one();
  broker::Fd client;
  std::jthread broker_side([&] {
    client = broker::Fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Said::tell_all(client.get(), said.first);
    if (said.ends_early) shutdown(client.get(), SHUT_RDWR);
  });
  try {
    trace::Source source(folder, filter);
    broker_side.join();
    Shown shown(in);
    Said::tell_all(client.get(), said.later);
    while (!in.empty()) {
      for (std::size_t n = 1 + in.below(8); n > 0 && !in.empty(); --n) telemetry.scribble(in);
      if (filter.process == 0 && in.once_in(8)) source.narrow(1 + static_cast<std::uint32_t>(in.below(3)));
      require(source.listen(), "the broker is there");
      source.take([&](const trace::Call& call) {
        require(call.channel < ring::max_channels, "channel %u", call.channel);
        require(call.session.number < 4 && call.session.vm == "t", "a session that was told");
        shown.add(call);
      });
      require(source.held() <= 4, "%zu sessions of four are held", source.held());
    }
    shown.finish();
  } catch (const ivgpu::Error& refused) {
    fuzz::require_sentence(refused.what());
  }
  if (broker_side.joinable()) broker_side.join();
  telemetry.clean();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, std::min<std::size_t>(size, 4096));
  switch (in.below(3)) {
    case 0:
      show_status(in);
      show_metrics(in);
      break;
    case 1: show_entries(in); break;
    default: show_sessions(in); break;
  }
  return 0;
}
