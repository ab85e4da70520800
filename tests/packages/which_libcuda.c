// Prints the path of the libcuda.so.1 that the loader gives to a program that asks for it, or "none".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int main(void) {
  struct link_map* map = NULL;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library != NULL) dlinfo(library, RTLD_DI_LINKMAP, &map);
  puts(map != NULL ? map->l_name : "none");
  return 0;
}
