// Workers' messages about device memory, and measurements of that memory. The real accounts of two VMs with a quota and
// of a third VM without one share a GPU. Their workers send any message, answer or stay silent, claim and hold any
// amount, and exit at any time.
//
// The target expects that reserved memory never exceeds a quota or the GPU's memory, that a worker gets answers only to
// its own questions, that a worker that has exited holds no reservation, and that a refused message has no effect.
#include <spdlog/spdlog.h>

#include <array>
#include <memory>

#include "host/broker/alloc/memory_reservations.h"
#include "tests/fuzz/clock.h"
#include "tests/fuzz/input.h"

namespace {

namespace broker = host::broker;
using fuzz::require;
using host::worker::MemoryMessage, host::worker::MemoryWord;

constexpr std::uint32_t slots = 3;
constexpr std::uint64_t mebi = 1 << 20, gpu_bytes = 1024 * mebi;
constexpr const char* gpu_name = "GPU-01000000-0000-0000-0000-000000000000";

struct Worker {
  bool lives = false, ready = false, reads = true;
  std::uint64_t reserved = 0, taken = 0;
  std::uint32_t asked = 0, collected = 0;  // sequence numbers of open questions
  std::uint64_t wanted = 0;
};

class Vm {
 public:
  Vm(broker::GpuAccounts& accounts, std::uint64_t quota)
      : quota_(quota),
        leases(accounts, slots,
               {.send = [this](std::uint32_t k, const MemoryMessage& m) { return hear(k, m); },
                .end = [this](std::uint32_t k, const std::string&) { to_end = k; },
                .taken = [this](std::uint32_t k, unsigned) { return workers[k].taken; },
                .is_spare = [](std::uint32_t) { return false; },
                .wake = [](broker::Clock::duration) {},
                .more_headroom = [] {}}) {
    gpus_.list.resize(1);
    gpus_.list[0].uuid = gpu_name;
    leases.bound(quota, gpus_);
  }

  void start(std::uint32_t k) {
    if (workers[k].lives || !leases.may_start(true)) return;
    workers[k] = {};
    workers[k].lives = true;
    leases.started(k, static_cast<pid_t>(k + 1));
  }
  void get_ready(std::uint32_t k) {
    if (!workers[k].lives || workers[k].ready) return;
    workers[k].ready = true;
    host::worker::ReadyMessage message{};
    message.gpus = 1;
    message.gpu[0].uuid[0] = 1;
    message.gpu[0].memory = gpu_bytes;
    leases.ready(k, message);
  }
  void end(std::uint32_t k) {
    if (!workers[k].lives) return;
    workers[k] = {};
    leases.gone(k);
  }
  void say(fuzz::Input& in, std::uint32_t k) {
    Worker& w = workers[k];
    MemoryMessage m{};
    m.kind = in.once_in(8) ? in.number<std::uint32_t>() : host::worker::memory_kind;
    m.word = in.once_in(8) ? MemoryWord{in.number<std::uint32_t>()}
                           : MemoryWord{static_cast<std::uint32_t>(1 + in.below(3))};
    m.device = in.once_in(8) ? in.number<std::uint32_t>() : 0;
    m.sequence = in.once_in(2) ? w.collected : in.number<std::uint8_t>();
    m.bytes = in.once_in(4) ? in.any() : in.number<std::uint8_t>() * mebi;
    m.total = in.once_in(16) ? in.any() : 0;
    const std::uint64_t reserved = w.reserved;
    if (m.word == MemoryWord::Reserve) w.asked = m.sequence, w.wanted = m.bytes;
    // The broker counts returned memory before it answers other workers.
    const bool returns = m.word == MemoryWord::Return && m.device == 0 && m.bytes <= w.reserved;
    if (returns) w.reserved -= m.bytes;
    if (leases.heard(k, m)) return;
    require(w.reserved == reserved || returns, "what is refused is not answered");
    if (returns) w.reserved = reserved;
    end(k);  // as the broker does
  }
  std::uint64_t reserved() const {
    std::uint64_t sum = 0;
    for (const Worker& w : workers) sum += w.reserved;
    return sum;
  }
  void check() {
    require(quota_ == 0 || reserved() <= quota_, "%llu are lent", static_cast<unsigned long long>(reserved()));
    for (const broker::QuotaStatus& q : leases.status())
      require(quota_ == 0 || q.used <= quota_, "%llu are used", static_cast<unsigned long long>(q.used));
  }

  std::array<Worker, slots> workers;
  std::optional<std::uint32_t> to_end;

 private:
  bool hear(std::uint32_t k, const MemoryMessage& m) {
    Worker& w = workers[k];
    require(w.lives && w.ready, "a worker that is not there is told something");
    if (!w.reads) return false;
    if (m.word == MemoryWord::Collect) w.collected = m.sequence;
    if (m.word != MemoryWord::Reserved) return true;
    require(m.sequence == w.asked, "an answer to another question");
    require(m.bytes == 0 || m.bytes >= w.wanted, "less than was asked for, and more than nothing");
    w.reserved += m.bytes;
    return true;
  }

  const std::uint64_t quota_;
  broker::VmGpus gpus_;

 public:
  broker::MemoryReservations leases;
};

broker::GpuUses some_uses(fuzz::Input& in) {
  broker::GpuUse use{.total = gpu_bytes, .missing = in.once_in(8) ? "today" : "", .processes = {}};
  for (pid_t pid = 1; pid <= static_cast<pid_t>(slots); ++pid)
    if (!in.once_in(8)) use.processes[pid] = in.once_in(4) ? in.any() : in.number<std::uint8_t>() * mebi;
  return {{gpu_name, use}};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, std::min<std::size_t>(size, 2048));
  broker::EventLoop loop(broker::make_epoll_waiter());
  broker::GpuAccounts accounts(loop);
  accounts.learn({{gpu_name, {.total = gpu_bytes, .missing = {}, .processes = {}}}});
  accounts.named(gpu_name).context = 8 * mebi;
  Vm vms[] = {{accounts, 400 * mebi}, {accounts, 500 * mebi}, {accounts, 0}};
  while (!in.empty()) {
    Vm& vm = vms[in.below(3)];
    const auto k = static_cast<std::uint32_t>(in.below(slots));
    switch (in.below(8)) {
      case 0: vm.start(k); break;
      case 1: vm.get_ready(k); break;
      case 2: vm.end(k); break;
      case 3: vm.workers[k].taken = in.once_in(4) ? in.any() : in.number<std::uint8_t>() * mebi; break;
      case 4: vm.leases.round_over(); break;
      case 5: {
        std::set<std::string> wanted;
        vm.leases.before_measuring(wanted);
        vm.leases.measured(some_uses(in));
        if (vm.to_end) vm.end(*vm.to_end), vm.to_end.reset();
        break;
      }
      case 6: vm.workers[k].reads = in.once_in(2); break;
      default:
        if (vm.workers[k].ready) vm.say(in, k);
    }
    std::uint64_t all = 0;
    for (Vm& each : vms) each.check(), all += each.reserved();
    require(all <= gpu_bytes, "%llu of the GPU are lent", static_cast<unsigned long long>(all));
  }
  return 0;
}
