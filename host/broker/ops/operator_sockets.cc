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
  status_ = StatusServer::listen(
      loop_, socket, [this] { return status_as_json(answers_.status()); }, error);
  return status_ != nullptr;
}

bool OperatorSockets::open_traces(const BrokerOptions& broker, std::string& error) {
  return traces_.listen({trace_path(broker.runtime_dir),
                         {static_cast<unsigned>(broker.trace_mode), broker.trace_owner, broker.trace_group},
                         "trace",
                         store_},
                        error);
}

bool OperatorSockets::open_control(const BrokerOptions& broker, std::string& error) {
  const ListenerOptions socket{control_path(broker.runtime_dir), {0600, "", ""}, "control", store_};
  control_ = AnswerServer::listen(loop_, socket, control_protocol(), answers_.control, error);
  return control_ != nullptr;
}

bool OperatorSockets::open_metrics(const BrokerOptions& broker, std::string& error) {
  metrics_.reset();  // the new server may use the same path
  if (broker.metrics.empty()) return true;
  AnswerServer::Address address = ListenerOptions{broker.metrics, access_of(broker), "socket", store_};
  if (const auto loopback = parse_loopback(broker.metrics)) address = *loopback;
  const auto page = [this] { return metrics_as_text(answers_.status()); };
  metrics_ = MetricsServer::listen(loop_, address, page, error);
  if (metrics_ == nullptr) error = "[broker] metrics: " + error;
  return metrics_ != nullptr;
}

void OperatorSockets::close() {
  status_.reset();
  metrics_.reset();
  control_.reset();
}

}  // namespace host::broker
