#include "host/broker/ops/operator_sockets.h"

#include "host/base/loopback_address.h"
#include "host/broker/ops/control_protocol.h"
#include "host/broker/ops/metrics.h"

namespace host::broker {

bool OperatorSockets::open(const BrokerOptions& broker, FdStore* store, std::string& error) {
  store_ = store;
  return open_status(broker, error) && open_traces(broker, error) && open_control(broker, error) &&
         open_metrics(broker, error);
}

bool OperatorSockets::open_status(const BrokerOptions& broker, std::string& error) {
  const ListenerOptions socket{status_path(broker.runtime_dir), access_of(broker), "socket", store_};
  auto server = StatusServer::listen(loop_, socket, [this] { return status_as_json(answers_.status()); });
  if (!server) return error = server.error().message, false;
  status_ = *std::move(server);
  return true;
}

bool OperatorSockets::open_traces(const BrokerOptions& broker, std::string& error) {
  const auto listening =
      traces_.listen({trace_path(broker.runtime_dir),
                      {static_cast<unsigned>(broker.trace_mode), broker.trace_owner, broker.trace_group},
                      "trace",
                      store_});
  if (!listening) error = listening.error().message;
  return static_cast<bool>(listening);
}

bool OperatorSockets::open_control(const BrokerOptions& broker, std::string& error) {
  const ListenerOptions socket{control_path(broker.runtime_dir), {0600, "", ""}, "control", store_};
  auto server = AnswerServer::listen(loop_, socket, control_protocol(), answers_.control);
  if (!server) return error = server.error().message, false;
  control_ = *std::move(server);
  return true;
}

bool OperatorSockets::open_metrics(const BrokerOptions& broker, std::string& error) {
  metrics_.reset();  // the new server may use the same path
  if (broker.metrics.empty()) return true;
  AnswerServer::Address address = ListenerOptions{broker.metrics, access_of(broker), "socket", store_};
  if (const auto loopback = parse_loopback(broker.metrics)) address = *loopback;
  const auto page = [this] { return metrics_as_text(answers_.status()); };
  auto server = MetricsServer::listen(loop_, address, page);
  if (!server) return error = "[broker] metrics: " + server.error().message, false;
  metrics_ = *std::move(server);
  return true;
}

void OperatorSockets::close() {
  status_.reset();
  metrics_.reset();
  control_.reset();
}

}  // namespace host::broker
