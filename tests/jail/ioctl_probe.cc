// Makes known requests, so that a test can check that the recorder records them.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main() {
  const int fd = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; ++i) ioctl(fd, 0xc0204601UL, nullptr);
  ioctl(fd, 0x30000001UL, nullptr);
  close(fd);
  _exit(0);  // exits as a worker does
}
