# Benchmarks that are not CUDA programs. tools/dev/parts runs `parts` and `parts_driver`.
add_executable(parts ${CMAKE_CURRENT_LIST_DIR}/parts.cc)
target_link_libraries(parts PRIVATE ivgpu_ring ivgpu_api Threads::Threads ${CMAKE_DL_LIBS})

# A library that wraps the driver. The loader finds the wrapped libcuda beside this library, or the system's.
add_library(parts_driver SHARED ${CMAKE_CURRENT_LIST_DIR}/parts_driver.cc)
target_link_libraries(parts_driver PRIVATE ivgpu_api -Wl,--no-as-needed simgpu ${CMAKE_DL_LIBS})
target_compile_options(parts PRIVATE ${IVGPU_OPTIMISED})
target_compile_options(parts_driver PRIVATE ${IVGPU_OPTIMISED})
target_link_options(parts_driver PRIVATE -Wl,--enable-new-dtags)
set_target_properties(parts_driver PROPERTIES SKIP_BUILD_RPATH ON LINK_FLAGS "-Wl,-rpath,'$ORIGIN'")

# Checks only that the measurement works: every part must have a number.
add_test(NAME bench.parts COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/parts_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(bench.parts PROPERTIES LABELS unit)
