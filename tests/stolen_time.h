// How much of the processors' time the host of this machine has given to other VMs, if the machine is one.
#pragma once

#include <array>
#include <fstream>
#include <numeric>
#include <string>

// Since it was made. Where nobody tells, nothing was stolen.
class StolenTime {
 public:
  // Of the time of all processors, from 0 to 1.
  double part() const {
    const Times now = look();
    const double all = now.all - begin_.all;
    return all > 0 ? (now.stolen - begin_.stolen) / all : 0;
  }

 private:
  struct Times {
    double all = 0, stolen = 0;
  };
  static Times look() {
    std::ifstream stat("/proc/stat");  // "cpu", then user, nice, system, idle, iowait, irq, softirq, steal
    std::string name;
    std::array<double, 8> times = {};
    stat >> name;
    for (double& time : times) stat >> time;
    return {std::accumulate(times.begin(), times.end(), 0.), times.back()};
  }
  const Times begin_ = look();
};
