// A worker as the broker's tests need it: the real start, jail and messages, with a driver that is a few lines. What it
// does is told by IVGPU_SIM_FAKE when it starts, and by a letter in its arena when its doorbell rings.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "host/worker/control.h"
#include "host/worker/start.h"
#include "ring/telemetry.h"

namespace {

host::worker::Options options;

bool start(const std::string& library, std::string& error) {
  const char* wish = std::getenv("IVGPU_SIM_FAKE");
  const std::string what = wish != nullptr ? wish : "";
  if (what == "fail") {
    error = "no GPU today, said \x1b[31m" + library;
    return false;
  }
  if (what == "lie") send(options.control_fd, "hello", 5, 0);
  if (what == "hang") pause();
  return true;
}

// What a channel's thread would have counted; 'h': what a worker says that its guest controls.
void count(ring::TelemetryPage& page, char what) {
  if (what == 'h') return void(std::memset(static_cast<void*>(&page), 0xff, sizeof page));
  ring::ChannelCounters& c = page.channel[3];
  ring::count(c.calls, 50), ring::count(c.waited, 20), ring::count(c.record_bytes, 2048);
  ring::count(c.submitted, 25);
  ring::count(c.to_device, 3 << 20), ring::count(c.spun, 7), ring::count(c.parked, 8), ring::count(c.woken, 9);
  page.device_memory = 5 << 20;
}

// An entry of channel 1 for each letter; says whether the trace was on.
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

// Each command answers with a letter after it.
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
    case 'c':
    case 'h': count(ring::TelemetryView(telemetry).page(), command[0]); break;
    case 't': command[2] = trace(ring::TelemetryView(telemetry)); break;
    case 'm':
      for (int i = 0; i < 100; ++i) send(options.control_fd, "again", 5, MSG_DONTWAIT);
      break;
    default: return;
  }
  command[1] = 'k';
}

int serve(ring::SlotView slot, const host::worker::Shared& shared) {
  for (;;) {
    pollfd fds[2] = {{options.doorbell_fd, POLLIN, 0}, {options.control_fd, POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0) return host::worker::exit_ended;
    std::uint64_t count;
    if (read(options.doorbell_fd, &count, sizeof count) != sizeof count) continue;
    obey(slot, shared.telemetry, reinterpret_cast<volatile char*>(slot.base() + ring::arena_offset));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string error;
  if (!host::worker::parse(argc, argv, options, error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return host::worker::exit_usage;
  }
  const auto describe = [](ring::DevicePage& page) {
    page.driver_version = 4242;
    page.device_count = 2;
    page.device[0].total_memory = std::uint64_t{3} << 30;
    page.device[1].total_memory = std::uint64_t{5} << 30;
  };
  const int code = host::worker::run(options, {start, describe, serve});
  std::fflush(nullptr);
  _exit(code);
}
