#include "host/broker/ops/operator_sockets.h"

#include "host/base/loopback_address.h"
#include "host/broker/ops/control_protocol.h"
#include "host/broker/ops/metrics.h"

namespace host::broker {

Result<void> OperatorSockets::open(const BrokerOptions& broker, FdStore* store) {
  store_ = store;
  if (const auto status = open_status(broker); !status) return status.error();
  if (const auto traces = open_traces(broker); !traces) return traces.error();
  if (const auto control = open_control(broker); !control) return control.error();
  return open_metrics(broker);
}

Result<void> OperatorSockets::open_status(const BrokerOptions& broker) {
  const ListenerOptions socket{status_path(broker.runtime_dir), access_of(broker), "socket", store_};
  auto server = StatusServer::listen(loop_, socket, [this] { return status_as_json(answers_.status()); });
  if (!server) return server.error();
  status_ = *std::move(server);
  return {};
}

Result<void> OperatorSockets::open_traces(const BrokerOptions& broker) {
  return traces_.listen({trace_path(broker.runtime_dir),
                         {static_cast<unsigned>(broker.trace_mode), broker.trace_owner, broker.trace_group},
                         "trace",
                         store_});
}

Result<void> OperatorSockets::open_control(const BrokerOptions& broker) {
  const ListenerOptions socket{control_path(broker.runtime_dir), {0600, "", ""}, "control", store_};
  auto server = AnswerServer::listen(loop_, socket, control_protocol(), answers_.control);
  if (!server) return server.error();
  control_ = *std::move(server);
  return {};
}

Result<void> OperatorSockets::open_metrics(const BrokerOptions& broker) {
  metrics_.reset();  // the new server may use the same path
  if (broker.metrics.empty()) return {};
  AnswerServer::Address address = ListenerOptions{broker.metrics, access_of(broker), "socket", store_};
  if (const auto loopback = parse_loopback(broker.metrics)) address = *loopback;
  const auto page = [this] { return metrics_as_text(answers_.status()); };
  auto server = MetricsServer::listen(loop_, address, page);
  if (!server) return Error{"[broker] metrics: " + server.error().message};
  metrics_ = *std::move(server);
  return {};
}

void OperatorSockets::close() {
  status_.reset();
  metrics_.reset();
  control_.reset();
}

}  // namespace host::broker
