// NVIDIA's MPS control daemon of one GPU: its folders, its life, and what it is asked through its own client program
// (docs/design/031-mps.md). It is the broker's child; where sessions outlive the broker it is the child of a process that
// does so as well (host/broker/mps/mps_keeper_main.cc), which the next broker goes on with (docs/design/034-restart.md).
//
// Trust: the daemon is NVIDIA's and believed. Its folders belong to the workers' user, who may spoil what lies there.
//
// Threads: the broker's one. Only prepare() looks into the file system; no function waits for a process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/process/helper.h"
#include "host/broker/mps/mps_store.h"

namespace host::broker {

// The folders below the broker's runtime_dir; they are the same for daemon and workers.
struct MpsFolders {
  std::string gpu, pipe, log;
};
MpsFolders mps_folders(const std::string& runtime_dir, const std::string& gpu);

class MpsDaemon {
 public:
  struct Place {
    std::string program;      // the path of nvidia-cuda-mps-control
    std::string runtime_dir;  // the broker's
    std::string gpu;          // a UUID
    uid_t uid = 0;            // the workers'; only root gives its folders away
    gid_t gid = 0;
    int priority = 0;  // as nice(1) counts
    // Where it outlives the broker; null: it does not.
    FdStore* store = nullptr;
    std::string keeper = {};  // the path of ivgpu-mps
    int life_fd = -1;         // ends with the broker
    std::uint32_t outlive_ms = 0;
    bool waits = false;  // for one that lives in its folder to end
  };
  struct Events {
    std::function<void()> up;
    // It has ended, or does not start: why, and whether it was up before.
    std::function<void(const std::string& why, bool was_up)> down;
  };
  using Answer = std::function<void(const std::optional<std::string>&)>;

  MpsDaemon(EventLoop& loop, Place place, Events events);
  // Ends it, with a second's patience, where end() was not called or is not done.
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  // Goes on with the one of an earlier broker, which is up, or `up` follows. False where there is none, and `why` is empty
  // then, or where it cannot be gone on with: it ends, and `why` is half a sentence.
  bool adopt(std::string& why);
  // Whether one that is not this broker's lives in the folder, and is waited for.
  bool is_in_use() const { return place_.waits && !living_other().empty(); }
  // Makes its folders anew. False where they cannot be had, as where another daemon lives there, and `error` is one
  // sentence.
  bool prepare(std::string& error) const;
  // Calls `up` or `down` later. Preconditions: it does not run, and prepare() was true.
  void start();
  bool runs() const { return process_ != nullptr; }
  bool is_up() const { return up_; }

  // Passes `words` to it, and calls back with what it says: nothing where it says none, within `patience`.
  void ask(const std::string& words, Clock::duration patience, Answer answer);
  // By `quit`, then SIGTERM, then SIGKILL; calls `done` once it has gone, at once where it does not run. `down` is not
  // called any more.
  void end(std::function<void()> done);

  // Before the broker ends and it goes on: nobody waits for answers any more.
  void leave();
  // What the next broker gets to know.
  SavedMps& saved() { return store_.saved(); }

  const Place& place() const { return place_; }
  const MpsFolders& folders() const { return folders_; }

 private:
  struct Question {
    std::unique_ptr<Helper> client;
    EventLoop::Id timer = 0;
    Answer answer;
  };

  Helper::Command command(std::vector<std::string> arguments, const std::string& input) const;
  Helper::Command kept_command(int control) const;
  std::unique_ptr<Helper> run(std::string& error);
  std::unique_ptr<Helper> run_kept(std::string& error);
  Helper::Gone on_end();
  std::uint64_t mark() const;
  bool has_pipe() const;
  std::string living_other() const;
  void look_for_pipe(Clock::time_point until);
  void fail_later(const std::string& why);
  void on_exit(const Helper::Exit& exit);
  void answered(std::uint64_t question, const std::optional<std::string>& said);
  void signal_next(int number);

  EventLoop& loop_;
  const Place place_;
  const MpsFolders folders_;
  const Events events_;
  MpsStore store_;
  Fd control_;  // its keeper's, where it has one
  std::unique_ptr<Helper> process_;
  std::map<std::uint64_t, Question> questions_;
  std::uint64_t next_question_ = 0;
  EventLoop::Id start_timer_ = 0, end_timer_ = 0;
  std::string given_up_;  // why it is killed before it was up
  bool up_ = false;
  std::function<void()> ended_;  // while it ends
};

}  // namespace host::broker
