// A socket whose clients ask once and are answered once: a client connects, says its request where the protocol has
// one, gets the answer and the end of the connection. The status, `ivgpu end`, `ivgpu reload` and the metrics are served
// so.
//
// Trust: a client may be anybody whom the socket lets in. A request is bounded in length and in time, the reading of an
// answer in time, and the number of clients at a time.
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

namespace host::broker {

struct Protocol {
  std::size_t longest = 0;  // of a request with its end, in bytes; 0: clients say nothing, and are answered at once
  // The length, without its end, of the request that `text` begins with; npos: it has not come to its end.
  std::size_t (*length_of)(std::string_view text) = nullptr;
  std::string too_long;  // the answer to a longer one; "": none
};

class AnswerServer {
 public:
  // The way back to one client; what is said to one that has gone is lost. Not used any more once the server has gone.
  class Answer {
   public:
    Answer(AnswerServer& server, std::uint64_t client) : server_(&server), client_(client) {}
    void say(const std::string& text) const { server_->say(client_, text); }
    // The connection ends once the client has read everything, or has not in time.
    void end() const { server_->end(client_); }

   private:
    AnswerServer* server_;
    std::uint64_t client_;
  };
  // Called once for each request. The answer may be said in parts, and later.
  using Asked = std::function<void(std::string_view request, Answer answer)>;
  using Address = std::variant<ListenerOptions, LoopbackAddress>;

  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<AnswerServer> listen(EventLoop& loop, const Address& address, Protocol protocol, Asked asked,
                                              std::string& error);
  ~AnswerServer();
  AnswerServer(const AnswerServer&) = delete;
  AnswerServer& operator=(const AnswerServer&) = delete;

 private:
  struct Client {
    Fd socket;
    std::string request, text;
    std::size_t sent = 0;  // of `text`
    bool ends = false;
    EventLoop::Id watch = 0, timer = 0;
  };
  AnswerServer(EventLoop& loop, Protocol protocol, Asked asked)
      : loop_(loop), protocol_(std::move(protocol)), asked_(std::move(asked)) {}
  void admit(Fd socket);
  void read_some(std::uint64_t client);
  void on_request(std::uint64_t client, std::size_t length);
  void say(std::uint64_t client, const std::string& text);
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
