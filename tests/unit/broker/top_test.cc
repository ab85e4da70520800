// `ivgpu top` with a real ivgpud and fake workers, on a terminal's screen, as text, and as lines of JSON.
#include <sys/ioctl.h>
#include <atomic>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/unit/broker/harness.h"
#include "tests/unit/terminal.h"

namespace {

using namespace broker_test;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A broker with one session whose worker has made calls.
struct Busy {
  Broker broker;
  Client guest{broker.socket_path()};

  Busy() {
    EXPECT_TRUE(guest.greet(3));
    for (std::uint32_t k = 0; k < 3; ++k) std::string("vector_add").copy(guest.entry(k).program, 24);
    EXPECT_EQ(guest.claim(), 0U);
    EXPECT_TRUE(broker.eventually_logged("session 0 of vector_add"));
  }
  Outcome top(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"top", "--runtime-dir", broker.folder.path()});
    return run_program(IVGPU, arguments);
  }
};

TEST(Top, OnceIsOneViewOfOneInterval) {
  Busy busy;
  std::atomic<bool> is_shown{false};
  std::thread works([&] {  // makes calls during each interval
    for (; !is_shown; std::this_thread::sleep_for(std::chrono::milliseconds(50))) busy.guest.tell(0, 'c');
  });
  const std::string me = std::to_string(getpid());
  const std::regex view(
      "ivgpud [0-9.]+, up [0-9.]+ s: 1 VM, 1 session; over [0-9.]+ s, by name\n"
      "VM, session +process +for +calls/s +submitted/s +to GPU/s +from GPU/s +GPU memory +GPU time/s\n"
      "t +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ MiB +0 B +5.0 MiB +-\n"
      "  0 +" +
      me + " vector_add +[0-9.]+ s +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ MiB +0 B +5.0 MiB +-\n");
  Outcome shown{};
  EXPECT_TRUE(eventually([&] {  // under load an interval may pass without a call
    shown = busy.top({"--once", "--interval", "0.5"});
    return shown.code == 0 && std::regex_match(shown.text, view);
  })) << shown.text;
  is_shown = true;
  works.join();
}

TEST(Top, AsJsonALineIsAView) {
  Busy busy;
  busy.guest.tell(0, 'c');
  const Outcome shown = busy.top({"--once", "--json", "--interval", "0.2", "--sort", "calls"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.text.find('\n'), shown.text.size() - 1);
  const auto view = nlohmann::json::parse(shown.text);
  const auto& vm = view["vms"][0];
  EXPECT_EQ(vm["name"], "t");
  EXPECT_EQ(vm["calls_per_s"], 0.0) << "of before the interval nothing counts";
  const auto& session = vm["sessions"][0];
  EXPECT_EQ(session["slot"], 0);
  EXPECT_EQ(session["process"], getpid());
  EXPECT_EQ(session["program"], "vector_add");
  EXPECT_EQ(session["state"], "claimed");
  EXPECT_EQ(session["device_memory_bytes"], 5 << 20);
  EXPECT_GE(session["claimed_s"], 0.2);
  EXPECT_GE(view["seconds"], 0.2);
}

TEST(Top, ElsewhereItIsTextUntilTheBrokerEnds) {
  Busy busy;
  const auto shown = [&] { return busy.broker.folder.read("shown"); };
  int code = -1;
  std::thread watches([&] {
    const std::string command = "\"" IVGPU "\" top --interval 0.2 --runtime-dir '" + busy.broker.folder.path() +
                                "' >'" + (busy.broker.folder / "shown") + "' 2>&1";
    code = run_program("/bin/sh", {"-c", command}).code;
  });
  EXPECT_TRUE(eventually([&] { return has(shown(), "\n\nivgpud "); })) << "several views";
  busy.broker.terminate();
  watches.join();
  EXPECT_EQ(code, 3);
  EXPECT_TRUE(shown().ends_with("\nivgpu: the broker has ended\n")) << shown();
  EXPECT_EQ(shown().find('\x1b'), std::string::npos);
}

TEST(Top, WithoutABroker) {
  Broker broker;
  broker.terminate();
  const Outcome shown = run_program(IVGPU, {"top", "--runtime-dir", broker.folder.path()});
  EXPECT_EQ(shown.code, 3);
  EXPECT_TRUE(shown.text.starts_with("ivgpu: no ivgpud answers at ")) << shown.text;
}

TEST(Top, ASessionWhoseWorkerIsLostIsShownAsThat) {
  Busy busy;
  busy.guest.command(0)[0] = 'x';
  busy.guest.ring_peer(ring::peer_of_slot(0));
  ASSERT_TRUE(busy.guest.becomes(0, ring::SlotState::Dead));
  const Outcome shown = busy.top({"--once", "--interval", "0.1"});
  EXPECT_TRUE(has(shown.text, "\n  0 (dead)  ")) << shown.text;
}

// ---- on a terminal -------------------------------------------------------------------------------------------------

class Screen {
 public:
  Screen(const Broker& broker, const std::string& term = "xterm", const std::vector<std::string>& more = {}) {
    setenv("TERM", term.c_str(), 1);
    std::vector<std::string> command = {IVGPU, "top", "--runtime-dir", broker.folder.path(), "--interval", "0.2"};
    command.insert(command.end(), more.begin(), more.end());
    const winsize size{24, 100, 0, 0};
    child_ = in_a_terminal(command, terminal_, &size);
  }
  ~Screen() {
    if (!ended_) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
    close(terminal_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  pid_t child() const { return child_; }
  void press(const char* keys) const {
    EXPECT_EQ(write(terminal_, keys, std::strlen(keys)), (ssize_t)std::strlen(keys));
  }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  termios settings() const {
    termios settings{};
    tcgetattr(terminal_, &settings);
    return settings;
  }
  // All bytes drawn so far.
  const std::string& drawn() {
    pollfd wait{terminal_, POLLIN, 0};
    char bytes[4096];
    for (ssize_t n; poll(&wait, 1, 0) == 1 && (n = read(terminal_, bytes, sizeof bytes)) > 0;)
      drawn_.append(bytes, static_cast<std::size_t>(n));
    return drawn_;
  }
  bool shows(const std::string& text) {
    return eventually([&] { return has(drawn().substr(from_), text); });
  }
  void from_here() { from_ = drawn().size(); }
  // The last complete page.
  std::string page() {
    const std::string& all = drawn();
    const std::size_t end = all.rfind("\x1b[J"), begin = all.rfind("\x1b[H", end);
    return end == std::string::npos ? "" : all.substr(begin, end - begin);
  }
  int exit_code() {
    int status = 0;
    // The program can exit only after its last output has been read.
    ended_ = eventually([&] { return drawn(), waitpid(child_, &status, WNOHANG) == child_; });
    drawn();
    return ended_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = -1;
  int terminal_ = -1;
  std::string drawn_;
  std::size_t from_ = 0;
  bool ended_ = false;
};

constexpr const char* own_page = "\x1b[?1049h";
constexpr const char* page_before = "\x1b[?25h\x1b[?1049l";

TEST(TopScreen, KeysSortAndEndIt) {
  Busy busy;
  Screen screen(busy.broker);
  ASSERT_TRUE(screen.shows("by name; q quits, s sorts"));
  EXPECT_TRUE(has(screen.drawn(), own_page));
  EXPECT_TRUE(screen.shows("vector_add"));
  EXPECT_EQ(screen.settings().c_lflag & (ICANON | ECHO), 0U);
  for (const char* column : {"calls", "submitted", "to-gpu", "from-gpu", "gpu-memory", "gpu-time", "name"}) {
    screen.from_here();
    screen.press("s");
    EXPECT_TRUE(screen.shows(std::string("by ") + column + ";")) << column;
  }
  screen.press("xyz\x1b[A");  // other keys do nothing
  screen.press("q");
  EXPECT_EQ(screen.exit_code(), 0);
  EXPECT_TRUE(screen.drawn().ends_with(page_before));
  EXPECT_EQ(screen.settings().c_lflag & (ICANON | ECHO), static_cast<tcflag_t>(ICANON | ECHO));
}

TEST(TopScreen, AViewFollowsTheNext) {
  Busy busy;
  Screen screen(busy.broker);
  ASSERT_TRUE(screen.shows("vector_add"));
  screen.from_here();
  busy.guest.tell(0, 'c');
  EXPECT_TRUE(screen.shows("5.0 MiB"));
}

TEST(TopScreen, ItFitsTheTerminal) {
  Busy busy;
  Screen screen(busy.broker);
  ASSERT_TRUE(screen.shows("vector_add"));
  screen.resize(3, 30);
  EXPECT_TRUE(screen.shows("... 2 lines more"));
  const std::string small = screen.page();
  EXPECT_EQ(std::count(small.begin(), small.end(), '\n'), 2);
  for (std::size_t at = 0, end; at < small.size(); at = end + 1) {
    end = std::min(small.find('\n', at), small.size());
    const std::string line =
        std::regex_replace(small.substr(at, end - at), std::regex("\x1b\\[[0-9;]*[a-zA-Z]|\r"), "");
    EXPECT_LE(line.size(), 30U) << line;
  }
  screen.resize(1, 1);
  screen.from_here();
  EXPECT_TRUE(screen.shows("\x1b[J"));
  screen.from_here();
  screen.resize(40, 200);
  EXPECT_TRUE(screen.shows("GPU memory"));
}

TEST(TopScreen, ASignalEndsItInOrder) {
  Busy busy;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Screen screen(busy.broker);
    ASSERT_TRUE(screen.shows("vector_add"));
    if (number == SIGINT)
      screen.press("\x03");
    else
      kill(screen.child(), number);
    EXPECT_EQ(screen.exit_code(), 128 + number);
    EXPECT_TRUE(screen.drawn().ends_with(page_before));
    EXPECT_NE(screen.settings().c_lflag & ECHO, 0U);
  }
}

TEST(TopScreen, SuspendedItGivesTheTerminalBack) {
  Busy busy;
  Screen screen(busy.broker);
  ASSERT_TRUE(screen.shows("vector_add"));
  kill(screen.child(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(screen.child(), &status, WUNTRACED), screen.child());
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(screen.drawn().ends_with(page_before));
  EXPECT_NE(screen.settings().c_lflag & ECHO, 0U);
  screen.from_here();
  kill(screen.child(), SIGCONT);
  EXPECT_TRUE(screen.shows(own_page));
  EXPECT_TRUE(screen.shows("vector_add"));
  screen.press("q");
  EXPECT_EQ(screen.exit_code(), 0);
}

TEST(TopScreen, TheBrokersEndIsReportedBehindTheScreen) {
  Busy busy;
  Screen screen(busy.broker);
  ASSERT_TRUE(screen.shows("vector_add"));
  busy.broker.terminate();
  EXPECT_EQ(screen.exit_code(), 3);
  EXPECT_TRUE(screen.drawn().ends_with(std::string(page_before) + "ivgpu: the broker has ended\r\n")) << screen.drawn();
}

TEST(TopScreen, ATerminalThatCannotDrawGetsText) {
  Busy busy;
  for (const char* term : {"dumb", ""}) {
    Screen screen(busy.broker, term, {"--once"});
    EXPECT_EQ(screen.exit_code(), 0);
    EXPECT_TRUE(has(screen.drawn(), "vector_add"));
    EXPECT_EQ(screen.drawn().find('\x1b'), std::string::npos);
  }
}

}  // namespace
