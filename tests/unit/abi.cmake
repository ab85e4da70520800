# Unit tests of ring/abi/ and host/simgpu/image/, and of the simulated GPU's driver calls.
add_executable(abi_test
  ${CMAKE_CURRENT_LIST_DIR}/abi/context_storage_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/error_text_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/export_tables_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/image_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/integrity_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/launch_blocking_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/proc_address_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/range_attributes_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/abi/visible_devices_test.cc)
target_link_libraries(abi_test PRIVATE ivgpu_abi ivgpu_api ivgpu_options GTest::gtest GTest::gtest_main Threads::Threads)
target_compile_definitions(abi_test PRIVATE IVGPU_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/../data")
ivgpu_discover(abi_test SANITIZED PREFIX unit. LABELS unit)

# abi_image(file option...): a fat binary from nvcc.
set(IVGPU_TEST_IMAGES ${CMAKE_BINARY_DIR}/test-images)
file(MAKE_DIRECTORY ${IVGPU_TEST_IMAGES})
function(abi_image name)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../data/images/scale.cu)
  add_custom_command(OUTPUT ${IVGPU_TEST_IMAGES}/${name} DEPENDS ${source} VERBATIM
                     COMMAND ${IVGPU_NVCC} ${ARGN} -o ${IVGPU_TEST_IMAGES}/${name} ${source})
  set_property(GLOBAL APPEND PROPERTY IVGPU_TEST_IMAGE_FILES ${IVGPU_TEST_IMAGES}/${name})
endfunction()
set(both_75 -gencode arch=compute_75,code=[compute_75,sm_75])
abi_image(default.fatbin -fatbin ${both_75})
abi_image(size.fatbin -fatbin ${both_75} --compress-mode=size)
abi_image(speed.fatbin -fatbin ${both_75} --compress-mode=speed)
abi_image(none.fatbin -fatbin ${both_75} --compress-mode=none)
abi_image(several.fatbin -fatbin ${both_75} -gencode arch=compute_90,code=compute_90
          -gencode arch=compute_121,code=compute_121)
abi_image(exact.fatbin -fatbin -gencode arch=compute_120a,code=[compute_120a,sm_120a])
abi_image(cubins.fatbin -fatbin -gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90)
abi_image(plain.cubin -cubin -arch=sm_75)
abi_image(plain.ptx -ptx -arch=compute_75)
abi_image(whole.o -c ${both_75})
abi_image(relocatable.o -dc ${both_75})
abi_image(cubins.o -dc -gencode arch=compute_75,code=sm_75)
abi_image(library.a -lib -rdc=true ${both_75})
get_property(images GLOBAL PROPERTY IVGPU_TEST_IMAGE_FILES)
add_custom_target(test_images DEPENDS ${images})

add_executable(simgpu_image_test ${CMAKE_CURRENT_LIST_DIR}/simgpu/image_texts_test.cc
                                 ${CMAKE_CURRENT_LIST_DIR}/simgpu/link_images_test.cc)
target_link_libraries(simgpu_image_test PRIVATE simgpu_image GTest::gtest GTest::gtest_main Threads::Threads)
target_compile_definitions(simgpu_image_test PRIVATE IVGPU_TEST_IMAGES="${IVGPU_TEST_IMAGES}")
add_dependencies(simgpu_image_test test_images)
ivgpu_discover(simgpu_image_test SANITIZED PREFIX unit. LABELS unit)

# The simulated GPU as a driver: tests link its library as a program's libcuda.so.1.
if(TARGET simgpu)
  add_executable(simgpu_api_test
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_capture_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_clusters_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_code_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_contexts_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_graph_updates_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_graphs_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_limits_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_log_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_streams_test.cc)
  add_library(simgpu_cubin_library SHARED ${CMAKE_CURRENT_LIST_DIR}/simgpu/cubin_library.cc)
  target_compile_definitions(simgpu_cubin_library PRIVATE IVGPU_TEST_CUBINS="${IVGPU_TEST_IMAGES}/cubins.fatbin")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simgpu/cubin_library.cc PROPERTIES
                              OBJECT_DEPENDS ${IVGPU_TEST_IMAGES}/cubins.fatbin)
  target_link_libraries(simgpu_api_test PRIVATE simgpu_cubin_library)
  add_executable(simgpu_process_test ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_process_test.cc)
  add_executable(simgpu_beyond_test ${CMAKE_CURRENT_LIST_DIR}/simgpu/api_beyond_test.cc)
  foreach(test simgpu_api_test simgpu_beyond_test simgpu_process_test)
    # A DT_RPATH, since on a machine with a GPU LD_LIBRARY_PATH names the real driver.
    target_link_options(${test} PRIVATE -Wl,--disable-new-dtags)
    target_link_libraries(${test} PRIVATE simgpu ivgpu_options ivgpu_cuda GTest::gtest GTest::gtest_main
                                          Threads::Threads)
  endforeach()
  ivgpu_discover(simgpu_api_test PREFIX simgpu. LABELS unit)
  # In a forked child, no thread refers to the memory of the parent's other threads, so a leak checker reports that
  # memory.
  ivgpu_discover(simgpu_beyond_test PREFIX simgpu. LABELS unit PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  ivgpu_discover(simgpu_process_test PREFIX simgpu. LABELS unit PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)

  add_test(NAME simgpu.exports
           COMMAND ${IVGPU_LIMITED} ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:simgpu> "-DALSO=ivgpu_sim_[a-z]+"
                   -P ${CMAKE_CURRENT_LIST_DIR}/exports_only.cmake)
endif()

# The runtime on the simulated GPU: nvcc builds one program in each way in which its code can reach a driver. (A
# sanitizer cannot be loaded into a program that was built without it.)
function(abi_runtime_program name)
  set(output ${CMAKE_BINARY_DIR}/test-programs/${name})
  set(sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/simgpu/api_runtime.cu)
  if("-rdc=true" IN_LIST ARGN)
    list(APPEND sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/simgpu/api_runtime_second.cu)
  endif()
  add_custom_command(OUTPUT ${output} DEPENDS ${sources} VERBATIM
                     COMMAND ${IVGPU_NVCC} -std=c++17 -gencode arch=compute_75,code=[compute_75,sm_75] ${ARGN}
                             -o ${output} ${sources})
  add_custom_target(${name} ALL DEPENDS ${output})
  add_test(NAME simgpu.${name}
           COMMAND ${IVGPU_LIMITED} ${CMAKE_COMMAND} -DPROGRAM=${output}
                   -DEXPECTED=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../data/runtime_output.txt
                   -DLIBRARY_FOLDER=$<TARGET_FILE_DIR:simgpu>
                   -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/same_output.cmake)
endfunction()
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/test-programs)
  cmake_path(SET runtime_folder NORMALIZE ${IVGPU_CUDA_BIN}/../lib64)
  abi_runtime_program(runtime_static)
  abi_runtime_program(runtime_shared -cudart shared -Xlinker -rpath=${runtime_folder})
  abi_runtime_program(runtime_relocatable -rdc=true -DSECOND_PART)
  abi_runtime_program(runtime_per_thread --default-stream per-thread)
  abi_runtime_program(runtime_lz4 --compress-mode=speed)
endif()
