// How much of the processors' time this machine's host has given to other VMs, if this machine is a VM.
#pragma once

#include <array>
#include <fstream>
#include <string>

class StolenTime {
 public:
  // What was stolen since this object was made, of the time that somebody wanted: from 0 to 1. 0 if /proc/stat does not say.
  double part() const {
    const Times now = look();
    const double wanted = now.wanted - begin_.wanted;
    return wanted > 0 ? (now.stolen - begin_.stolen) / wanted : 0;
  }

 private:
  struct Times {
    double wanted = 0, stolen = 0;
  };
  static Times look() {
    std::ifstream stat("/proc/stat");
    std::string name;
    std::array<double, 8> times = {};
    stat >> name;  // "cpu": all processors
    for (double& time : times) stat >> time;
    const auto [user, nice, system, idle, io_wait, irq, soft_irq, stolen] = times;
    return {user + nice + system + irq + soft_irq + stolen, stolen};
  }
  const Times begin_ = look();
};
