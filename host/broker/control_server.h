// The socket for `ivgpu end`. Its mode is 0600, so only the broker's user can end sessions. A client sends one line and
// gets one: "end VM" or "end VM/SESSION", and "ok COUNT" or "error SENTENCE". Then the connection ends.
//
// Trust: a line is read as hostile all the same. One that is longer than any request, or does not come to its end in
// time, ends the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/broker/event_loop.h"
#include "host/broker/listener.h"

namespace host::broker {

struct EndRequest {
  std::string vm;                     // fit to be a VM's name
  std::optional<std::uint32_t> slot;  // nothing: all
};

// Of a line without its end; nothing where it is no request.
std::optional<EndRequest> parse_end(std::string_view line);

class ControlServer {
 public:
  static constexpr std::size_t longest_line = 128;  // "end ", a name of 63 letters, a slot, and the line's end

  // `answer` gets a line without its end and gives one. Null on failure, and `error` is one sentence.
  using Answer = std::function<std::string(std::string_view line)>;
  static std::unique_ptr<ControlServer> listen(EventLoop& loop, const ListenerOptions& socket, Answer answer,
                                               std::string& error);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  struct Client;
  using Clients = std::list<Client>;
  ControlServer(EventLoop& loop, Answer answer);
  void admit(Fd socket);
  void read_some(Clients::iterator client);
  void drop(Clients::iterator client);

  EventLoop& loop_;
  const Answer answer_;
  std::unique_ptr<Listener> listener_;
  Clients clients_;
};

// The path of this socket: no VM's socket has this name.
std::string control_path(const std::string& runtime_dir);

}  // namespace host::broker
