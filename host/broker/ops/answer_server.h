// A socket with one request and one answer per connection. A client sends its request, if the protocol has one, reads
// the answer and the end of the connection. The status, `ivgpu end`, `ivgpu reload` and the metrics use it.
//
// Trust: every client that the socket's permissions admit. Bounds hold for a request's length and time, the time to
// read an answer, and the number of clients.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "host/base/event_loop.h"
#include "host/base/process/listener.h"
#include "host/base/result.h"

namespace host::broker {

struct Protocol {
  std::size_t longest = 0;  // bytes of a request with its end; 0: clients send nothing and are answered at once
  // Length of the first request in `text`, without its end; npos: incomplete.
  std::size_t (*length_of)(std::string_view text) = nullptr;
  std::string too_long;  // the answer to a longer request; "": none
};

class AnswerServer {
 public:
  // Sends the answer to one client; dropped if the client has gone. Must not be used after the server's end.
  class Answer {
   public:
    Answer(AnswerServer& server, std::uint64_t client) : server_(&server), client_(client) {}
    void reply(const std::string& text) const { server_->reply(client_, text); }
    // Closes the connection when the client has read everything, or its time is up.
    void end() const { server_->end(client_); }

   private:
    AnswerServer* server_;
    std::uint64_t client_;
  };
  // Called once for each request. The answer may be sent in parts, and later.
  using Asked = std::function<void(std::string_view request, Answer answer)>;
  using Address = std::variant<ListenerOptions, LoopbackAddress>;

  // The error is one sentence.
  static Result<std::unique_ptr<AnswerServer>> listen(EventLoop& loop, const Address& address, Protocol protocol,
                                                      Asked asked);
  ~AnswerServer();
  AnswerServer(const AnswerServer&) = delete;
  AnswerServer& operator=(const AnswerServer&) = delete;

 private:
  struct Client {
    Fd socket;
    std::string request, text;
    std::size_t sent = 0;  // bytes of `text`
    bool ends = false;
    EventLoop::Id watch = 0, timer = 0;
  };
  AnswerServer(EventLoop& loop, Protocol protocol, Asked asked)
      : loop_(loop), protocol_(std::move(protocol)), asked_(std::move(asked)) {}
  void admit(Fd socket);
  void read_some(std::uint64_t client);
  void on_request(std::uint64_t client, std::size_t length);
  void reply(std::uint64_t client, const std::string& text);
  void end(std::uint64_t client);
  void send_some(std::uint64_t client);
  void limit_time(std::uint64_t client);
  void drop(std::uint64_t client);

  EventLoop& loop_;
  const Protocol protocol_;
  const Asked asked_;
  std::unique_ptr<Listener> listener_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_ = 1;
};

}  // namespace host::broker
