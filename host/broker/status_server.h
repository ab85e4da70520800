// The socket for the broker's status: a client that connects gets one document and the end of the connection. Nothing
// is read from a client, so there is nothing to parse.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "host/broker/event_loop.h"
#include "host/broker/listener.h"

namespace host::broker {

class StatusServer {
 public:
  // Null on failure, and `error` is one sentence. `document` is asked once per client.
  static std::unique_ptr<StatusServer> listen(EventLoop& loop, const ListenerOptions& socket,
                                              std::function<std::string()> document, std::string& error);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  struct Client;
  using Clients = std::list<Client>;
  StatusServer(EventLoop& loop, std::function<std::string()> document);
  void admit(Fd socket);
  void send_some(Clients::iterator client);
  void drop(Clients::iterator client);

  EventLoop& loop_;
  const std::function<std::string()> document_;
  std::unique_ptr<Listener> listener_;
  Clients clients_;
};

}  // namespace host::broker
