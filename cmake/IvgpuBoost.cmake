# Boost.Lockfree, headers alone, as system headers: between threads of one process
# (docs/design/017-lockfree-between-threads.md).
find_path(IVGPU_BOOST_INCLUDE boost/lockfree/queue.hpp)
if(NOT IVGPU_BOOST_INCLUDE)
  message(FATAL_ERROR "Boost's headers were not found: install libboost-dev, or run tools/deps.")
endif()
add_library(ivgpu_boost INTERFACE)
target_include_directories(ivgpu_boost SYSTEM INTERFACE ${IVGPU_BOOST_INCLUDE})
if(IVGPU_SANITIZE MATCHES thread)
  target_compile_options(ivgpu_boost INTERFACE -fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/tsan-ignored.txt)
endif()
