# One precompiled header for the tests that are not optimised: reading GoogleTest and the standard library is most of what
# their compilers do (cmake/IvgpuOptions.cmake says where there is none).
add_executable(tests_precompiled EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/precompiled.cc)
target_link_libraries(tests_precompiled PRIVATE ivgpu_options GTest::gtest_main Threads::Threads)
target_precompile_headers(tests_precompiled PRIVATE <gtest/gtest.h> <nlohmann/json.hpp> ${IVGPU_STANDARD_HEADERS})

get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS targets)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  get_target_property(options ${target} COMPILE_OPTIONS)
  get_target_property(sources ${target} SOURCES)
  if(sources MATCHES "\\.c(;|$)")  # C has no such header
    continue()
  endif()
  if(libraries MATCHES "GTest::gtest_main" AND NOT (IVGPU_OPTIMISED AND options MATCHES "${IVGPU_OPTIMISED}") AND NOT target STREQUAL "tests_precompiled")
    target_precompile_headers(${target} REUSE_FROM tests_precompiled)
  endif()
endforeach()
