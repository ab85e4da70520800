// Reads the configuration again, at SIGHUP and for `ivgpu reload`, compares it with the one in effect, and applies the
// changes that running sessions allow (host/broker/config/config_changes.h). It owns what a reload in progress still
// has to do. Only the thread of the event loop uses it.
//
// VMs that are missing are removed; new VMs are added when the removed ones have gone. A mistake in the broker's file
// changes nothing, and a mistake in a drop-in file changes nothing of its VM. The log has a line for each change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/base/process/service_manager.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/ops/answer_server.h"
#include "host/broker/ops/operator_sockets.h"
#include "host/broker/ops/reload_report.h"
#include "host/broker/vms/served_vms.h"
#include "host/broker/vms/vm_services.h"

namespace host::broker {

class ConfigReload {
 public:
  // What a reload changes, or reports to.
  struct Targets {
    BrokerOptions& broker;  // the values in effect
    VmServices& services;
    ServedVms& vms;
    OperatorSockets& sockets;
    ServiceManager& manager;
    ReloadReport& report;
  };

  // `file` is the broker's file; the defaults are those of a machine with `cores` processors.
  ConfigReload(std::string file, unsigned cores, const Targets& targets)
      : file_(std::move(file)),
        cores_(cores),
        broker_(targets.broker),
        services_(targets.services),
        vms_(targets.vms),
        sockets_(targets.sockets),
        manager_(targets.manager),
        report_(targets.report) {}
  ConfigReload(const ConfigReload&) = delete;
  ConfigReload& operator=(const ConfigReload&) = delete;

  // Reads the file, at once or when the VMs that an earlier reload removed have gone. `asked_by` is for the log, and
  // stays valid.
  void start(const char* asked_by);
  // Does the same for a client of the control socket, which gets a line for each change.
  void start_for(AnswerServer::Answer asker);
  // Adds the new VMs and finishes the reload: call it when all removed VMs have gone.
  void go_on();

 private:
  struct Wanted {
    Config config;
    std::vector<VmGpus> gpus;  // of each VM
  };
  void finish();
  void take_file_over();
  Result<Wanted> read_again();
  Result<std::vector<VmGpus>> check(Config& wanted);
  bool keep_refused(Config& wanted) const;
  Result<std::vector<VmGpus>> find_gpus_again(const Config& wanted) const;
  bool keeps_gpus(const Vm& vm) const;
  void change_broker(const Config& wanted);
  void change_vms(const std::vector<VmOptions>& wanted, const std::vector<VmGpus>& gpus);
  void add_vms();

  const std::string file_;
  const unsigned cores_;
  BrokerOptions& broker_;
  VmServices& services_;
  ServedVms& vms_;
  OperatorSockets& sockets_;
  ServiceManager& manager_;
  ReloadReport& report_;
  // VMs to add when the removed ones have gone, since they may need the same names, files and users.
  std::vector<VmOptions> coming_;
  std::vector<VmGpus> coming_gpus_;
  const char* again_ = nullptr;  // the requester of another reload meanwhile
};

}  // namespace host::broker
