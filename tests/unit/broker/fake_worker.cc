// A worker for the broker's tests: the real start, jail and messages, with a driver of a few lines. IVGPU_SIM_FAKE
// selects its behaviour at the start. Later, each doorbell makes the worker execute a command, a letter in its arena.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "host/base/process/control.h"
#include "host/base/process/liveness_pipe.h"
#include "host/simgpu/image/device_names.h"
#include "host/worker/start.h"
#include "ring/ops/gpu_use.h"
#include "ring/ops/telemetry.h"
#include "tests/unit/broker/mps_client.h"

namespace {

host::worker::Options options;
std::unique_ptr<host::worker::LivenessPipe> life;

// Behaves as NVIDIA's driver does when it starts as a client of MPS: connects to the daemon's socket and maps a file in
// /dev/shm. Prints what the jail allowed.
void be_a_client_of_mps() {
  const char* pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/test", pipes != nullptr ? pipes : "");
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int memory = open(("/dev/shm/" + std::string(std::getenv("IVGPU_SIM_SHM"))).c_str(), O_RDWR | O_CLOEXEC);
  std::fprintf(stderr, "as a client of MPS: the socket %s, the shared memory %s\n", connected ? "connects" : "does not",
               memory >= 0 ? "opens" : std::strerror(errno));
  for (const int fd : {client, memory})
    if (fd >= 0) close(fd);
}

// Sends a ready message with more descriptors than one may carry.
void pass_descriptors() {
  host::worker::ReadyMessage message{};
  message.kind = host::worker::ready_kind;
  iovec data{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> room{};
  msghdr header{};
  header.msg_iov = &data, header.msg_iovlen = 1;
  header.msg_control = room.data(), header.msg_controllen = room.size();
  cmsghdr* const beside = CMSG_FIRSTHDR(&header);
  beside->cmsg_level = SOL_SOCKET, beside->cmsg_type = SCM_RIGHTS, beside->cmsg_len = CMSG_LEN(2 * sizeof(int));
  std::memcpy(CMSG_DATA(beside), std::array{0, 1}.data(), 2 * sizeof(int));
  sendmsg(options.control_fd, &header, 0);
}

host::Result<void> start(const std::string& library) {
  const char* wish = std::getenv("IVGPU_SIM_FAKE");
  const std::string what = wish != nullptr ? wish : "";
  if (what == "fail") return host::Error{"no GPU today, said \x1b[31m" + library};
  if (what == "lie") send(options.control_fd, "hello", 5, 0);
  if (what == "pass") pass_descriptors();
  if (what == "hang") pause();
  if (what == "mps") be_a_client_of_mps();
  return {};
}

// Counts as a channel's thread would. The command 'h' fills the page with hostile values.
void count(ring::TelemetryPage& page, char what) {
  if (what == 'h') return void(std::memset(static_cast<void*>(&page), 0xff, sizeof page));
  ring::ChannelCounters& c = page.channel[3];
  ring::count(c.calls, 50), ring::count(c.waited, 20), ring::count(c.record_bytes, 2048);
  ring::count(c.submitted, 25);
  ring::count(c.to_device, 3 << 20), ring::count(c.spun, 7), ring::count(c.parked, 8), ring::count(c.woken, 9);
  page.device_memory = 5 << 20;
}

// Writes an entry of channel 1 for each letter. The result states whether the trace was on.
char trace(ring::TelemetryView telemetry) {
  static ring::TraceWriter writer(telemetry.page().channel[1].written, telemetry.cells(1));
  static std::uint64_t position = 0;
  if (telemetry.page().tracing == 0) return 'n';
  ring::TraceEntry entry{};
  entry.position = ++position;
  entry.call = 2;  // cuCtxSynchronize
  writer.put(entry);
  return 'y';
}

// ---- device memory -------------------------------------------------------------------------------------------------

using host::worker::MemoryMessage, host::worker::MemoryWord;

std::uint64_t reserved = 0, taken = 0;
bool stubborn = false;  // ignores Collect messages

void say(MemoryWord word, std::uint32_t sequence, std::uint64_t bytes) {
  const MemoryMessage message{host::worker::memory_kind, word, 0, sequence, bytes, 0};
  send(options.control_fd, &message, sizeof message, MSG_NOSIGNAL);
}

// Receives a message. Returns false if the broker has closed the socket.
bool hear(MemoryMessage& message) {
  if (life->receive(options.control_fd, message) != sizeof message) return false;
  if (message.word != MemoryWord::Collect || stubborn) return true;
  say(MemoryWord::Return, message.sequence, reserved - taken);
  reserved = taken;
  return true;
}

// Sends a question and returns the answer to it.
MemoryMessage ask(MemoryWord word, std::uint64_t bytes) {
  static std::uint32_t sequence = 0;
  say(word, ++sequence, bytes);
  MemoryMessage message{};
  while (hear(message))
    if (message.sequence == sequence && message.word != MemoryWord::Collect) break;
  return message;
}

// `number` is the command's argument, and receives the answer.
void speak_of_memory(ring::TelemetryPage& page, char what, volatile std::uint64_t* number) {
  MemoryMessage answer{};
  switch (what) {
    case 'B':
      answer = ask(MemoryWord::Reserve, number[0]);
      reserved += answer.bytes;
      number[1] = answer.bytes;
      break;
    case 'R':
      answer = ask(MemoryWord::Headroom, 0);
      number[1] = answer.bytes;
      number[2] = answer.total;
      break;
    case 'G':
      say(MemoryWord::Return, 0, number[0]);
      reserved -= number[0];
      break;
    case 'T':
      taken = number[0];
      page.taken[0] = taken;
      break;
    case 'S': stubborn = true; break;
    case 'F':
      for (std::uint64_t i = 0; i < number[0]; ++i) say(MemoryWord::Headroom, 0, 0);
      break;
    default: break;
  }
}

// ---- GPU time ------------------------------------------------------------------------------------------------------

bool wants_gpu = false;  // the worker's page always reports work, and the worker waits after each submission

void use_gpu(const host::GpuUsePages& pages) {
  ring::DeviceUse& words = pages.use->device[0];
  ++words.waits;
  words.settled = words.submitted.load();
  ++words.submitted;
}

// ---- MPS -----------------------------------------------------------------------------------------------------------

// Connects `times` times, one connection after another, without sending. Returns the number of successful connections.
std::uint64_t knock(const std::string& path, std::uint64_t times) {
  std::uint64_t were = 0;
  const sockaddr_un address = mps_play::address_of(path);
  for (std::uint64_t i = 0; i < times; ++i) {
    const int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    were += connect(own, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 1 : 0;
    close(own);
  }
  return were;
}

// Sends requests that no driver sends: connects to an empty address, and passes invalid descriptors.
std::string ask_nonsense() {
  const int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const std::string to_nothing = connect(own, nullptr, 0) == 0 ? mps_play::introduce(own) : mps_play::failed("connect");
  close(own);
  std::string of_nothing;
  for (const int fd : {-1, 1 << 20}) of_nothing += connect(fd, nullptr, 0) == 0 ? ", connects" : ", refused";
  return to_nothing + of_nothing;
}

// Makes a context, floods the connect proxy, or sends invalid requests. The path follows the command's letter; the
// result follows the path.
void be_a_client(volatile char* command) {
  auto* const number = reinterpret_cast<volatile std::uint64_t*>(command + 8);
  const std::string path(const_cast<const char*>(command + 64));
  if (command[0] == 'K') return void(number[1] = knock(path, number[0]));
  const std::string came = command[0] == 'Q' ? ask_nonsense() : mps_play::make_context(path);
  std::memcpy(const_cast<char*>(command + 512), came.c_str(), came.size() + 1);
}

bool interrupt() {
  const std::uint64_t one = 1;
  return write(options.interrupt_fd, &one, sizeof one) == 8;
}

// Executes one command, and writes a letter behind the command as the answer.
void obey(ring::SlotView slot, std::byte* telemetry, volatile char* command) {
  switch (command[0]) {
    case 'x': _exit(3);
    case 'a': std::abort();
    case 'p':
      for (int i = 0; i < 200; ++i) std::fprintf(stderr, "line %d \x1b[2J%s\n", i, std::string(600, '#').c_str());
      break;
    case 'n':
      for (int i = 0; i < 10000; ++i) std::fprintf(stderr, "x\n");
      break;
    case 'f': std::memset(slot.base() + ring::first_channel, 0x5a, slot.bytes() - ring::first_channel); break;
    case 'o': command[2] = open("/etc/shadow", O_RDONLY) < 0 && socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 'n' : 'y'; break;
    case 'i': command[2] = interrupt() ? 'y' : 'n'; break;
    case 'c':
    case 'h': count(ring::TelemetryView(telemetry).page(), command[0]); break;
    case 'e': ring::TelemetryView(telemetry).page().fault = 700; break;  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 't': command[2] = trace(ring::TelemetryView(telemetry)); break;
    case 'B':
    case 'R':
    case 'G':
    case 'T':
    case 'S':
    case 'F':
      speak_of_memory(ring::TelemetryView(telemetry).page(), command[0],
                      reinterpret_cast<volatile std::uint64_t*>(command + 8));
      break;
    case 'C':
    case 'K':
    case 'Q': be_a_client(command); break;
    case 'L': wants_gpu = true; break;
    case 'm':
      for (int i = 0; i < 100; ++i) send(options.control_fd, "again", 5, MSG_DONTWAIT);
      break;
    default: return;
  }
  command[1] = 'k';
}

int serve(ring::SlotView slot, const host::worker::Shared& shared) {
  for (;;) {
    pollfd fds[3] = {{options.doorbell_fd, POLLIN, 0}, {options.control_fd, POLLIN, 0}, life->to_poll()};
    if (wants_gpu) use_gpu(shared.gpu_use), usleep(100);
    poll(fds, 3, wants_gpu ? 0 : life->timeout_ms());
    life->found(fds[2].revents);
    if (life->is_over()) return host::worker::exit_ended;
    MemoryMessage message{};
    if (fds[1].revents != 0 && !hear(message)) return host::worker::exit_ended;
    if (fds[0].revents == 0) continue;
    std::uint64_t count;
    if (read(options.doorbell_fd, &count, sizeof count) != sizeof count) continue;
    obey(slot, shared.telemetry, reinterpret_cast<volatile char*>(slot.base() + ring::arena_offset));
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = host::worker::parse(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "%s\n", parsed.error().message.c_str());
    return host::worker::exit_usage;
  }
  options = *std::move(parsed);
  life = std::make_unique<host::worker::LivenessPipe>(options.life_fd, std::chrono::milliseconds(options.outlive_ms));
  const auto describe = [](ring::DevicePage& page) {
    page.driver_version = 4242;
    page.device_count = 2;
    page.device[0].total_memory = std::uint64_t{3} << 30;
    page.device[1].total_memory = std::uint64_t{5} << 30;
    for (int d = 0; d < 2; ++d) std::memcpy(page.device[d].uuid_v2, simgpu::device_uuid_bytes(d).data(), 16);
  };
  const int code = host::worker::run(options, {start, describe, serve});
  std::fflush(nullptr);
  _exit(code);
}
