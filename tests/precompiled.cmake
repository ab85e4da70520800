# Precompiled headers for the unoptimised tests, whose compilation mostly consists of reading GoogleTest, the standard
# library and the call table (cmake/IvgpuOptions.cmake lists the exceptions). The call table has a separate precompiled
# header, so that a change of the table recompiles no other test; with g++, few tests include the table.
foreach(header tests_precompiled api_tests_precompiled)
  add_executable(${header} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/precompiled.cc)
  target_link_libraries(${header} PRIVATE ivgpu_options GTest::gtest_main Threads::Threads)
  target_precompile_headers(${header} PRIVATE <gtest/gtest.h> <nlohmann/json.hpp> ${IVGPU_STANDARD_HEADERS})
endforeach()
target_link_libraries(api_tests_precompiled PRIVATE ivgpu_api)
target_precompile_headers(api_tests_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/ring/api/call.h)

get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS targets)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  get_target_property(options ${target} COMPILE_OPTIONS)
  get_target_property(sources ${target} SOURCES)
  if(sources MATCHES "\\.c(;|$)")  # no precompiled header for C
    continue()
  endif()
  if(libraries MATCHES "GTest::gtest_main" AND NOT (IVGPU_OPTIMISED AND options MATCHES "${IVGPU_OPTIMISED}") AND NOT target MATCHES "tests_precompiled$")
    set(header tests_precompiled)
    if(IVGPU_SANITIZE AND libraries MATCHES "ivgpu_(session|guest|entry_points|fake_driver)(;|$)")
      set(header api_tests_precompiled)
    endif()
    target_precompile_headers(${target} REUSE_FROM ${header})
  endif()
endforeach()
