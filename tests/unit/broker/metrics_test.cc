// The broker's metrics: the text, the answers to requests, and the endpoint of a real ivgpud with fake workers.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "host/base/loopback_address.h"
#include "host/broker/ops/metric_groups.h"
#include "host/broker/ops/metrics.h"
#include "host/broker/ops/metrics_server.h"
#include "host/broker/ops/metrics_text.h"
#include "tests/prometheus_text.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using namespace host::broker;
using ring::SlotState;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- the text ------------------------------------------------------------------------------------------------------

TEST(MetricsText, AFamilyStandsTogetherWhateverTheOrderOfItsSamples) {
  MetricsText text;
  text.add("ivgpu_a_total", ring::MetricKind::Counter, "Of a.", {{"vm", "x"}}, std::uint64_t{18446744073709551615U});
  text.add("ivgpu_b", ring::MetricKind::Gauge, "Of b.", {}, 0.25);
  text.add("ivgpu_a_total", ring::MetricKind::Counter, "Of a.", {{"vm", "y"}, {"slot", "0"}}, std::uint64_t{0});
  EXPECT_EQ(text.text(),
            "# HELP ivgpu_a_total Of a.\n# TYPE ivgpu_a_total counter\n"
            "ivgpu_a_total{vm=\"x\"} 18446744073709551615\nivgpu_a_total{vm=\"y\",slot=\"0\"} 0\n"
            "# HELP ivgpu_b Of b.\n# TYPE ivgpu_b gauge\nivgpu_b 0.25\n");
  EXPECT_EQ(MetricsText().text(), "");
}

TEST(MetricsText, ALabelsValueCannotEndItsQuotes) {
  MetricsText text;
  text.add("ivgpu_a", ring::MetricKind::Gauge, "Of a.", {{"program", "\\\"} 1\nivgpu_lie 2\n"}}, std::uint64_t{1});
  EXPECT_TRUE(has(text.text(), "ivgpu_a{program=\"\\\\\\\"} 1\\nivgpu_lie 2\\n\"} 1\n")) << text.text();
  EXPECT_EQ(prometheus::read(text.text()).size(), 1U);
}

TEST(MetricsText, AMetricsNameHasItsUnitAndKind) {
  namespace f = ring::metrics;
  EXPECT_EQ(metric_name("vm_", f::calls), "ivgpu_vm_calls_total");
  EXPECT_EQ(metric_name("vm_", f::posted), "ivgpu_vm_posted_calls_total");
  EXPECT_EQ(metric_name("vm_workers_", f::throttled_s), "ivgpu_vm_workers_throttled_seconds_total");
  EXPECT_EQ(metric_name("session_", f::device_memory_bytes), "ivgpu_session_device_memory_bytes");
  EXPECT_EQ(metric_name("broker_loop_", f::longest_iteration_ms), "ivgpu_broker_loop_longest_iteration_seconds");
}

// The tests' own reader of metrics must find mistakes in a text.
TEST(PrometheusText, MistakesAreFound) {
  const std::string head = "# HELP ivgpu_a A.\n# TYPE ivgpu_a gauge\n";
  EXPECT_NO_THROW(prometheus::read(head + "ivgpu_a{x=\"\\\\\"} 1\n"));
  for (const std::string& bad :
       {std::string("ivgpu_a 1\n"), head, head + "ivgpu_a 1", head + "ivgpu_a x\n", head + "ivgpu_a{x=\"1} 1\n",
        head + "ivgpu_a{x=\"\\x\"} 1\n", head + "ivgpu_a{x=\"1\",x=\"2\"} 1\n", head + "ivgpu_a{1=\"1\"} 1\n",
        head + "ivgpu_a 1\nivgpu_a 2\n", head + "ivgpu_a 1\n" + head + "ivgpu_a{x=\"1\"} 1\n", head + "ivgpu_b 1\n",
        std::string("# HELP ivgpu_a A.\n# TYPE ivgpu_a counter\nivgpu_a 1\n"),
        std::string("# HELP ivgpu_a_ms A.\n# TYPE ivgpu_a_ms gauge\nivgpu_a_ms 1\n"),
        std::string("# HELP ivgpu_a \n# TYPE ivgpu_a gauge\nivgpu_a 1\n")})
    EXPECT_THROW(prometheus::read(bad), prometheus::Misfit) << bad;
}

// ---- of a status ---------------------------------------------------------------------------------------------------

SlotStatus claimed_slot(const std::string& program) {
  SlotStatus slot;
  slot.word = {3, SlotState::Claimed};
  slot.worker = 900;
  slot.owner.pid = 77, slot.owner.peer = 65;
  slot.claimed_for = std::chrono::milliseconds(1500);
  slot.counters = {.calls = 50, .waited = 20, .submitted = 25, .to_device = 3 << 20, .device_memory = 5 << 20};
  slot.program = program;
  return slot;
}

BrokerStatus some_status() {
  BrokerStatus status{"0.1.0", "/lib/libcuda.so.1", std::chrono::seconds(5), {}, {}};
  status.iterations.longest = std::chrono::microseconds(5638);
  VmStatus vm;
  vm.name = "train", vm.region_bytes = 1 << 30;
  vm.counters = {.calls = 60, .waited = 20, .device_memory = 5 << 20};
  vm.gpu_memory = 8ULL << 30;
  vm.ends.orderly = 2, vm.ends.signal = 1;
  vm.gpus.list = {{0, "GPU-1", "0000:81:00.0", "", false}, {{}, "MIG-2", "", "", false}};
  vm.quotas = {{"GPU-1", 4ULL << 30, 1 << 30, 3 << 29, ""}, {"MIG-2", 0, 7, 8, "nobody measures it"}};
  vm.gpu_time = GpuTimeStatus{.share = {.weight = 2}, .account = {}};
  vm.gpu_time->account = {std::chrono::milliseconds(1500), std::chrono::milliseconds(2250), 42, 7};
  status.gpus = {{"GPU-1", host::scheduler::Scheduler::Sharing::Leases}, {"MIG-2"}};
  vm.bounds.group = "/sys/fs/cgroup/x", vm.bounds.cpu_max = 2500, vm.bounds.use.throttled_us = 1'250'000;
  vm.slots = {claimed_slot("vector_add"), SlotStatus{}};
  vm.slots[1].word.state = SlotState::Ready, vm.slots[1].worker = 901;
  status.vms = {vm};
  return status;
}

// The sample's value; "" if it is absent.
std::string value(const prometheus::Families& all, const std::string& name, const std::string& labels = "") {
  const auto family = all.find(name);
  if (family == all.end()) return "";
  const auto sample = family->second.samples.find(labels);
  return sample == family->second.samples.end() ? "" : sample->second;
}

TEST(Metrics, MetricsOfBrokerVmsAndSessions) {
  const auto all = prometheus::read(metrics_as_text(some_status()));
  EXPECT_EQ(value(all, "ivgpu_build_info", R"({version="0.1.0",library="/lib/libcuda.so.1"})"), "1");
  EXPECT_EQ(value(all, "ivgpu_broker_up_seconds"), "5");
  EXPECT_EQ(value(all, "ivgpu_broker_loop_longest_iteration_seconds"), "0.005638");
  const std::string vm = R"({vm="train"})", session = R"({vm="train",slot="0",process="77"})";
  EXPECT_EQ(value(all, "ivgpu_vm_calls_total", vm), "60");
  EXPECT_EQ(value(all, "ivgpu_vm_posted_calls_total", vm), "40");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_memory_used_bytes", vm), "5242880");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_memory_total_bytes", vm), "8589934592");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_memory_quota_bytes", R"({vm="train",uuid="GPU-1"})"), "4294967296");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_memory_charged_bytes", R"({vm="train",uuid="MIG-2"})"), "7");
  EXPECT_EQ(value(all, "ivgpu_gpu_leases", R"({uuid="GPU-1"})"), "1");
  EXPECT_EQ(value(all, "ivgpu_gpu_leases", R"({uuid="MIG-2"})"), "0");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_time_weight", vm), "2");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_time_had_seconds_total", vm), "1.5");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_time_waited_seconds_total", vm), "2.25");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_time_leases_total", vm), "42");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_time_preempted_leases_total", vm), "7");
  EXPECT_EQ(value(all, "ivgpu_vm_worker_ends_total", R"({vm="train",end="orderly"})"), "2");
  EXPECT_EQ(value(all, "ivgpu_vm_worker_ends_total", R"({vm="train",end="protocol_broken"})"), "0");
  EXPECT_EQ(value(all, "ivgpu_vm_slots", R"({vm="train",state="claimed"})"), "1");
  EXPECT_EQ(value(all, "ivgpu_vm_slots", R"({vm="train",state="empty"})"), "0");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_info", R"({vm="train",ordinal="0",gpu="0",uuid="GPU-1",pci="0000:81:00.0"})"),
            "1");
  EXPECT_EQ(value(all, "ivgpu_vm_gpu_info", R"({vm="train",ordinal="1",gpu="",uuid="MIG-2",pci=""})"), "1");
  EXPECT_EQ(value(all, "ivgpu_session_calls_total", session), "50");
  EXPECT_EQ(value(all, "ivgpu_session_device_memory_bytes", session), "5242880");
  EXPECT_EQ(value(all, "ivgpu_session_claimed_seconds", session), "1.5");
  EXPECT_EQ(value(all, "ivgpu_session_info", R"({vm="train",slot="0",process="77",program="vector_add",worker="900"})"),
            "1");
  EXPECT_EQ(all.at("ivgpu_session_calls_total").samples.size(), 1U) << "a slot that nobody holds is no session";
}

// docs/metrics.md is printed from this list.
TEST(Metrics, EachIsListedInWords) {
  const auto all = prometheus::read(metrics_as_text(some_status()));
  std::set<std::string> listed;
  for (const MetricInWords& metric : metrics_in_words()) {
    ASSERT_TRUE(listed.insert(metric.name).second) << metric.name << " comes twice";
    ASSERT_TRUE(all.contains(metric.name)) << metric.name;
    const prometheus::Family& family = all.at(metric.name);
    EXPECT_EQ(family.help, metric.help);
    EXPECT_EQ(family.type, metric.kind == ring::MetricKind::Counter ? "counter" : "gauge");
    std::string labels = family.samples.begin()->first;
    labels = std::regex_replace(labels, std::regex("=\"[^\"]*\"|[{}]"), "");
    EXPECT_EQ(std::regex_replace(labels, std::regex(","), ", "), metric.labels) << metric.name;
  }
  EXPECT_EQ(listed.size(), all.size());
}

TEST(Metrics, WithoutAControlGroupThereAreNoMetricsOfIt) {
  BrokerStatus status = some_status();
  status.vms[0].bounds.group.clear();
  EXPECT_FALSE(has(metrics_as_text(status), "ivgpu_vm_workers_"));
  status.vms[0].slots[0].worker = 0;
  status.vms[0].slots[0].word.state = SlotState::Dead;
  const auto all = prometheus::read(metrics_as_text(status));
  EXPECT_EQ(all.count("ivgpu_session_info"), 1U) << "its program still holds the slot";
  EXPECT_EQ(all.count("ivgpu_session_calls_total"), 0U) << "and its worker has gone";
}

TEST(Metrics, UnreportedTimeIsNoMetric) {
  BrokerStatus status = some_status();
  const auto told = nlohmann::json::parse(status_as_json(status));
  EXPECT_EQ(told["vms"][0]["gpu_time"],
            (nlohmann::json{{"had_s", 1.5}, {"leases", 42}, {"preempted", 7}, {"waited_s", 2.25}, {"weight", 2}}));
  EXPECT_EQ(told["gpus"][0]["sharing"], "leases");
  EXPECT_EQ(told["gpus"][1]["sharing"], "time slices");
  status.vms[0].gpu_time.reset();
  EXPECT_FALSE(has(metrics_as_text(status), "ivgpu_vm_gpu_time_"));
}

TEST(Metrics, OfNothingAndOfMuchAreGoodText) {
  BrokerStatus status = some_status();
  const VmStatus one = status.vms[0];
  status.vms.clear();
  EXPECT_NO_THROW(prometheus::read(metrics_as_text(status)));
  for (int i = 0; i < 20; ++i) {
    status.vms.push_back(one);
    status.vms.back().name = "vm-" + std::to_string(i);
    status.vms.back().slots.assign(64, claimed_slot("\"\\\n{}"));
  }
  const auto all = prometheus::read(metrics_as_text(status));
  EXPECT_EQ(all.at("ivgpu_session_calls_total").samples.size(), 20U * 64);
}

// One description generates both the document and the metrics, so both have the same figures.
TEST(Metrics, EveryMetricOfTheDocumentIsThere) {
  const BrokerStatus status = some_status();
  const auto document = nlohmann::json::parse(status_as_json(status));
  const auto all = prometheus::read(metrics_as_text(status));
  const auto& vm = document["vms"][0];
  for (const auto& group : groups_of_vm())
    for (const auto& [metric, read] : group.readings) {
      const auto& fields = *group.key == '\0' ? vm : vm[group.key];
      ASSERT_TRUE(fields.contains(metric.key)) << metric.key;
      EXPECT_EQ(std::strtod(value(all, metric_name(group.prefix, metric), R"({vm="train"})").c_str(), nullptr),
                fields[metric.key].get<double>())
          << metric.key;
    }
  for (const auto& [metric, read] : work_metrics()) {
    const std::string name = metric_name("session_", metric);
    EXPECT_EQ(value(all, name, R"({vm="train",slot="0",process="77"})"), vm["slots"][0]["counters"][metric.key].dump())
        << name;
  }
  for (const auto& [metric, read] : end_metrics())
    EXPECT_EQ(value(all, "ivgpu_vm_worker_ends_total", "{vm=\"train\",end=\"" + std::string(metric.key) + "\"}"),
              vm["worker_ends"][metric.key].dump());
}

// ---- requests ------------------------------------------------------------------------------------------------------

std::string status_line(const std::string& request) {
  const std::string answer = http_answer(request, [] { return std::string("page\n"); });
  return answer.substr(0, answer.find("\r\n"));
}

TEST(Http, AnAnswerIsWhole) {
  EXPECT_EQ(http_answer("GET /metrics HTTP/1.1\r\nHost: x\r", [] { return std::string("page\n"); }),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 5\r\n"
            "Connection: close\r\n\r\npage\n");
  EXPECT_TRUE(has(http_answer("PUT /metrics HTTP/1.1", nullptr), "\r\nAllow: GET\r\n")) << "and no page is made";
}

TEST(Http, WhatIsAskedForDecides) {
  for (const char* good : {"GET /metrics HTTP/1.1", "GET /metrics HTTP/1.0\r\nHost: x\r",
                           "GET /metrics?name[]=a HTTP/1.1", "GET /metrics HTTP/1.1\nHost: x"})
    EXPECT_EQ(status_line(good), "HTTP/1.1 200 OK") << good;
  for (const char* other :
       {"GET / HTTP/1.1", "GET /metrics/ HTTP/1.1", "GET /metricsx HTTP/1.1", "GET metrics HTTP/1.1", "POST / HTTP/1.1",
        "GET http://x/metrics HTTP/1.1", "GET /../metrics HTTP/1.1"})
    EXPECT_EQ(status_line(other), "HTTP/1.1 404 Not Found") << other;
  for (const char* method : {"POST", "HEAD", "DELETE", "OPTIONS", "X"})
    EXPECT_EQ(status_line(std::string(method) + " /metrics HTTP/1.1"), "HTTP/1.1 405 Method Not Allowed") << method;
  for (const std::string bad :
       {"", "\r", "GET", "GET /metrics", "GET  HTTP/1.1", "get /metrics HTTP/1.1", "GET /metrics HTTP/2.0",
        "GET /metrics HTTP/1.1 x", "GET /me trics HTTP/1.1", "GET /metrics\x01 HTTP/1.1", "GET /m\xc3\xa9 HTTP/1.1",
        " GET /metrics HTTP/1.1", "\x16\x03\x01\x02", "GET /metrics HTTP/1.1x"})
    EXPECT_EQ(status_line(bad), "HTTP/1.1 400 Bad Request") << bad;
}

TEST(Http, ARequestEndsWithAnEmptyLine) {
  const auto length_of = http_protocol().length_of;
  const auto none = std::string_view::npos;
  EXPECT_EQ(length_of("GET / HTTP/1.1\r\n\r\n"), 15U);
  EXPECT_EQ(length_of("GET / HTTP/1.1\n\nmore"), 14U);
  EXPECT_EQ(length_of("a\r\nb\n\r\n"), 4U);
  for (const char* begun : {"", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "a\r\nb\r\n", "a\n\rb\n", "\r\n\r"})
    EXPECT_EQ(length_of(begun), none) << begun;
}

TEST(Http, OnlyTheLoopbackIsAnAddress) {
  const auto v4 = parse_loopback("127.0.0.1:9910"), v6 = parse_loopback("[::1]:65535");
  ASSERT_TRUE(v4 && v6);
  EXPECT_FALSE(v4->v6);
  EXPECT_EQ(v4->port, 9910);
  EXPECT_TRUE(v6->v6);
  EXPECT_EQ(in_words(*v4), "127.0.0.1:9910");
  EXPECT_EQ(in_words(*v6), "[::1]:65535");
  for (const char* other : {"",
                            ":9910",
                            "9910",
                            "0.0.0.0:9910",
                            "[::]:9910",
                            "*:9910",
                            "localhost:9910",
                            "127.0.0.2:9910",
                            "127.0.0.1",
                            "127.0.0.1:",
                            "127.0.0.1:0",
                            "127.0.0.1:65536",
                            "127.0.0.1:-1",
                            "127.0.0.1:+1",
                            "127.0.0.1: 1",
                            "127.0.0.1:1 ",
                            "127.0.0.1:0x1",
                            "::1:9910",
                            "[::1]9910",
                            "10.0.0.1:9910",
                            "127.0.0.1:1:1"})
    EXPECT_FALSE(parse_loopback(other)) << other;
}

// ---- the endpoint --------------------------------------------------------------------------------------------------

// A port that was free when the function asked the kernel.
int free_port(int family = AF_INET) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) address.sin6_addr = in6addr_loopback;
  socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  return bound ? ntohs(address.sin6_port) : 0;
}

int connect_to_port(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

int connect_to_path(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Sends a request, and returns all bytes until the connection ends.
std::string answer_on(int fd, const std::string& request) {
  [[maybe_unused]] const auto sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  std::string heard;
  pollfd wait{fd, POLLIN, 0};
  char bytes[4096];
  for (ssize_t n; poll(&wait, 1, deadline_ms) == 1 && (n = read(fd, bytes, sizeof bytes)) > 0;)
    heard.append(bytes, static_cast<std::size_t>(n));
  close(fd);
  return heard;
}

const std::string get = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n";

prometheus::Families families_in(const std::string& answer) {
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  return prometheus::read(answer.substr(answer.find("\r\n\r\n") + 4));
}

struct WithMetrics {
  int port = free_port();
  Broker broker{"", "", [] {}, "", "metrics = \"127.0.0.1:" + std::to_string(port) + "\"\n"};
  std::string ask(const std::string& request) const { return answer_on(connect_to_port(port), request); }
};

TEST(Endpoint, ServesTheLoopback) {
  WithMetrics served;
  Client guest(served.broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.tell(0, 'c'));
  const std::string labels = "{vm=\"t\",slot=\"0\",process=\"" + std::to_string(getpid()) + "\"}";
  EXPECT_TRUE(
      eventually([&] { return value(families_in(served.ask(get)), "ivgpu_session_calls_total", labels) == "50"; }));
  EXPECT_TRUE(served.ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 ")) << "nothing but the metrics";
  EXPECT_TRUE(served.ask("PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(served.ask("\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(served.broker.terminate(), 0);
  EXPECT_EQ(connect_to_port(served.port), -1);
}

TEST(Endpoint, ServesTheOtherLoopback) {
  const int port = free_port(AF_INET6);
  if (port == 0) return;  // the machine has no IPv6
  Broker broker(
      "", "", [] {}, "", "metrics = \"[::1]:" + std::to_string(port) + "\"\n");
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  address.sin6_addr = in6addr_loopback;
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(families_in(answer_on(fd, get)).count("ivgpu_vm_calls_total"), 1U);
  EXPECT_EQ(connect_to_port(port), -1) << "the other is not served with it";
}

TEST(Endpoint, ServesASocketWithTheStatussPermissions) {
  Folder folder;
  const std::string path = folder / "metrics";
  Broker broker(
      "", "", [] {}, "", "socket_mode = \"0640\"\nmetrics = \"" + path + "\"\n");
  EXPECT_EQ(families_in(answer_on(connect_to_path(path), get)).count("ivgpu_vm_calls_total"), 1U);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Endpoint, ThereIsNoneWhereTheFileNamesNone) {
  Broker broker;
  const auto document = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()});
  EXPECT_EQ(document.code, 0);
  for (const auto& fd : std::filesystem::directory_iterator("/proc/" + std::to_string(broker.pid) + "/fd")) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, broker.pid, 0));
    const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, std::stoi(fd.path().filename()), 0));
    if (copy >= 0 && getsockname(copy, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
      EXPECT_EQ(address.ss_family, AF_UNIX);
    }
    close(copy);
    close(pidfd);
  }
}

TEST(Endpoint, RequestsInPiecesAndBeyondAllBounds) {
  WithMetrics served;
  const int slow = connect_to_port(served.port);
  for (const char c : get.substr(0, get.size() - 1)) {
    ASSERT_EQ(send(slow, &c, 1, MSG_NOSIGNAL), 1);
    if (c == '\n') std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(families_in(answer_on(slow, "\n")).count("ivgpu_vm_calls_total"), 1U);
  const std::string many = "GET /metrics HTTP/1.1\r\nX: " + std::string(8192 - 26, 'x');
  ASSERT_EQ(many.size(), 8192U);
  EXPECT_TRUE(served.ask(many).starts_with("HTTP/1.1 400 ")) << "without an end in 8 KiB";
  EXPECT_EQ(served.ask("GET /metrics HTTP/1.1\r\n"), "") << "without an end within five seconds";
  const std::string fits = "GET /metrics HTTP/1.1\r\nX: " + std::string(8192 - 30, 'x') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), 8192U);
  EXPECT_TRUE(served.ask(fits).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(served.broker.terminate(), 0);
}

// Idle clients cost the broker nothing, and cannot block others for long.
TEST(Endpoint, DropsClientsThatSendNothingOrDoNotRead) {
  WithMetrics served;
  std::vector<int> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(connect_to_port(served.port));
    ASSERT_GE(idle.back(), 0);
    if (i % 2 == 0) {
      EXPECT_EQ(send(idle.back(), get.data(), get.size(), MSG_NOSIGNAL), static_cast<ssize_t>(get.size()));
    }
  }
  EXPECT_TRUE(eventually([&] { return served.ask(get).starts_with("HTTP/1.1 200 "); }));
  Client guest(served.broker.socket_path());
  EXPECT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  const std::uint64_t before = loop_iterations(served.broker);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(loop_iterations(served.broker) - before, 200U) << "the broker spins";
  for (const int fd : idle) close(fd);
}

TEST(Endpoint, AnAddressThatIsTakenIsASentence) {
  WithMetrics served;
  const std::string address = "127.0.0.1:" + std::to_string(served.port);
  Folder folder;
  folder.write("libcuda.so.1", "");
  const std::string config = folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                                        "\"\nworker = \"" FAKE_WORKER "\"\nmetrics = \"" + address +
                                                        "\"\n[gpu]\nlibrary = \"" + (folder / "libcuda.so.1") +
                                                        "\"\n[vm.t]\nregion_size = \"128MiB\"\nslots = 3\n");
  const Outcome second = run_ivgpud({"--config", config});
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(second.text.ends_with("\nivgpud: [broker] metrics: " + address + ": Address already in use\n"))
      << second.text;
}

TEST(Endpoint, AReloadBringsItAndTakesItAway) {
  Broker broker;
  const int port = free_port();
  const std::string file = broker.folder.read("c.toml"), address = "127.0.0.1:" + std::to_string(port);
  const auto reload_with = [&](const std::string& metrics) {
    std::string text = file;
    text.insert(text.find("log_level"), "metrics = \"" + metrics + "\"\n");
    broker.folder.write("c.toml", text);
    return run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()});
  };
  EXPECT_EQ(connect_to_port(port), -1);
  const Outcome on = reload_with(address);
  EXPECT_EQ(on.code, 0);
  EXPECT_EQ(on.text, "[broker] metrics \"\" -> \"" + address + "\"\n");
  EXPECT_TRUE(answer_on(connect_to_port(port), get).starts_with("HTTP/1.1 200 "));
  const Outcome bad = reload_with("/nowhere/metrics");
  EXPECT_EQ(bad.code, 1);
  EXPECT_TRUE(has(bad.text,
                  "ivgpu: [broker] metrics: /nowhere/metrics.lock: No such file or directory; there are no "
                  "metrics\n"))
      << bad.text;
  EXPECT_EQ(connect_to_port(port), -1);
  const Outcome again = reload_with("/nowhere/metrics");
  EXPECT_EQ(again.code, 1) << "it is tried again: " << again.text;
  EXPECT_EQ(reload_with(address).code, 0);
  EXPECT_TRUE(answer_on(connect_to_port(port), get).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(reload_with("").code, 0);
  EXPECT_EQ(connect_to_port(port), -1);
  EXPECT_EQ(reload_with("0.0.0.0:1").code, 1);
}

}  // namespace
