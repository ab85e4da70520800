#include "tests/faults/vm.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tools/ivgpu/support/install.h"

namespace faults {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds guest_patience{90'000};  // covers a boot under TCG on a busy machine

std::string bundled(const char* name, const std::string& otherwise) {
  const char* bundle = std::getenv("IVGPU_BUNDLE");
  return bundle != nullptr && *bundle != '\0' ? (fs::path(bundle) / name).string() : otherwise;
}

// Prepares the guest's image with only the program under test, and the job.
ivgpu::QemuOptions prepare(const Paths& paths, const std::string& socket, const fs::path& folder,
                           const std::string& job) {
  ivgpu::Install install = ivgpu::install_at(paths.build / "bin/ivgpu");
  install.programs.clear();
  const ivgpu::GuestImage image = ivgpu::make_guest_image(install, {.program_dirs = {paths.program.parent_path()}});
  const fs::path initrd = folder / "initrd";
  ivgpu::write_initrd(initrd, image, ivgpu::job_settings({.command = job}));
  return {.qemu = bundled("qemu", "qemu-system-x86_64"),
          .accelerator = ivgpu::usable_accelerator(),
          .memory = "512M",
          .cpus = 2,
          .kernel = image.kernel,
          .initrd = initrd,
          .device = {.socket = socket},
          .serial = {.console_log = folder / "console.log"}};
}

}  // namespace

// The third program's output is ignored, since the test may kill the program before it begins. `exec` replaces the
// shell by the program. Otherwise the kill would hit the shell, and the program would keep its slot.
//
// These programs give up a silent host after 50 questions (5 s), since the host may be busy.
std::string Machine::rounds(unsigned long count) {
  return "export IVGPU_HOST_PATIENCE=50\nleft=" + std::to_string(count) + " endless=" + std::to_string(endless_ms) +
         R"sh(
program() { exec faults_program libcuda.so.1 busy "$1" "$2"; }
while :; do
  left=$((left - 1)) work=2000
  [ $left != 0 ] || work=$endless
  echo round
  program $work a & a=$!
  program $work b & b=$!
  program 60000 c >/dev/null & c=$!
  sleep "0.$((300 + RANDOM % 700))"
  kill -9 $c
  wait $a $b
done
)sh";
}

Machine::Machine(const Paths& paths, const std::string& socket, const std::string& job)
    : out_(ivgpu::make_socket_pair()), err_(ivgpu::make_socket_pair()), control_(ivgpu::make_socket_pair()) {
  ivgpu::QemuOptions options = prepare(paths, socket, folder_.path(), job);
  options.serial.out = out_.theirs.get();
  options.serial.err = err_.theirs.get();
  options.serial.control = control_.theirs.get();
  const ivgpu::Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  qemu_.emplace(ivgpu::Command{.argv = ivgpu::qemu_command(options),
                               .keep = {out_.theirs.get(), err_.theirs.get(), control_.theirs.get()},
                               .in = nothing.get(),
                               .out = nothing.get()});
  for (ivgpu::FdPair* port : {&out_, &err_, &control_}) port->theirs.reset();
  lines_.emplace(out_.ours.get());
}

std::string Machine::line() {
  const auto line = lines_->next(guest_patience);
  if (!line) throw Failure("the guest says nothing any more" + Lines(err_.ours.get()).rest());
  return *line;
}

void Machine::expect_progress(const std::string& label) { lines_->expect_progress(label, guest_patience); }

void Machine::expect_begun() {
  while (line() != "round") continue;
  ended_ = {};
  for (int begun = 0; begun < 2;) {
    const std::string said = line();
    if (said == "a begun" || said == "b begun")
      ++begun;
    else if (take_ending(said); said.find(" right ") == std::string::npos)
      throw Failure("in the guest, before anything had happened: " + said + Lines(err_.ours.get()).rest());
  }
}

// On a busy machine one program may end before the next one has begun.
void Machine::take_ending(const std::string& said) {
  if (said.size() < 2 || (said[0] != 'a' && said[0] != 'b')) throw Failure("in the guest: " + said);
  std::optional<Ending>& ending = said[0] == 'a' ? ended_.first : ended_.second;
  ending = parse_ending(said.substr(2));
  if (!ending->right && !ending->ended) throw Failure("in the guest: " + said);
}

Machine::Endings Machine::endings() {
  while (!ended_.first || !ended_.second) take_ending(line());
  return {*ended_.first, *ended_.second};
}

void Machine::kill() {
  qemu_->signal(SIGKILL);
  expect_no_other_signal("QEMU", qemu_->wait(), SIGKILL);
}

}  // namespace faults
