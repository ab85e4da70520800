// The commands of `ivgpu`, one file each. Each returns the exit code to pass on or throws an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/broker.h"
#include "tools/ivgpu/support/child.h"

namespace ivgpu {

struct RunOptions {
  BrokerOptions broker;
  bool own_broker = false;  // even where one is running
  std::vector<std::string> program;
};
int run(const RunOptions& options);

// A program of this machine as the guest of the broker behind `region`. An Error where the guest library is missing.
Command loopback_command(const Install& install, const std::vector<std::string>& program, const std::string& region);

struct SimOptions {
  std::vector<std::string> program;
};
int sim(const SimOptions& options);

struct VmOptions {
  BrokerOptions broker;
  bool vsock = false;  // the bells of "pmem" by vsock
  std::string memory = "1G";
  int cpus = 2;
  std::filesystem::path kernel;                     // empty: a stock Debian cloud kernel
  std::vector<std::filesystem::path> program_dirs;  // each appears in the guest as /programs/NAME
  std::vector<std::string> environment;             // NAME=VALUE for the guest's command
  int timeout_s = 0;                                // 0: none
  bool keep = false;                                // after the command, a shell on the terminal
  bool steps = false;                               // report each step on stderr
  std::vector<std::string> command;                 // empty: a shell
};
int vm(const VmOptions& options);

struct StatusOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  bool json = false;
  double watch_s = 0;  // 0: once; else again and again, with rates, until the broker ends
};
int status(const StatusOptions& options);

struct EndOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string target;                                // VM, or VM/SESSION
};
int end_sessions(const EndOptions& options);

struct ReloadOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
};
int reload(const ReloadOptions& options);

struct AddOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;
  std::vector<std::string> lines;  // of its table
  std::string owner;               // whom it is for; empty: nobody in particular
};
int add_vm_file(const AddOptions& options);

struct RemoveOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;
  std::string owner;  // only if it is for this one; empty: whoever it is for
};
int remove_vm_file(const RemoveOptions& options);

struct TopOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  double interval_s = 1;
  bool once = false;  // one view, and the end
  bool json = false;
  std::string sort = "name";  // one of top::sort_names()
};
int live_view(const TopOptions& options);

// The status of the broker of that runtime_dir: one JSON document.
std::string read_status(const std::filesystem::path& runtime_dir);
// Of a broker that has answered before.
std::string read_status_again(const std::filesystem::path& runtime_dir);

// The broker's document for people; with rates where there is one from `seconds` ago. An Error when it is none of this
// version's.
std::string status_as_text(const std::string& document, const std::string& before = {}, double seconds = 0);

struct TraceOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;                                    // empty: all
  std::uint32_t slot = ~0U;                          // ~0: all
  std::uint32_t process = 0;                         // 0: all
  bool summary = false;
  std::filesystem::path perfetto;    // the file to write
  double seconds = 0;                // 0: until it is interrupted, or the broker ends
  BrokerOptions broker;              // for a program
  bool own_broker = false;           // even where one is running
  std::vector<std::string> program;  // empty: watches sessions that others start
};
int trace_calls(const TraceOptions& options);

struct CheckOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";
  std::filesystem::path root;  // empty: this machine
  bool host = false, guest = false, json = false;
};
int check(const CheckOptions& options);

struct CoverageOptions {
  BrokerOptions broker;
  bool files_only = false;  // read the program, do not run it
  bool json = false;
  std::vector<std::string> program;
};
int coverage(const CoverageOptions& options);

struct BenchOptions {
  BrokerOptions broker;             // an empty region_size: as large as it is useful here
  std::vector<std::string> groups;  // of latency, copy, memory, start and sessions; empty: all
  bool quick = false;               // few samples
  std::vector<std::string> mixes;   // of share's; empty: all
  int pairs = 0;                    // of share's rounds; 0: as many as usual
  double round_s = 0;               // how long each of them is; 0: as long as usual
  bool no_alone = false;            // none of share's loads is measured alone for the mixes with it
  bool mps = false;                 // under a MPS daemon of its own
  bool markdown = false;            // the tables
  double idle_s = 0;                // how long a session is left idle; 0: 10, or with `quick` half a second
  double margin_percent = 20;       // the margin that `against` allows
  std::filesystem::path json, plot, against;
};
int benchmark(const BenchOptions& options);

}  // namespace ivgpu
