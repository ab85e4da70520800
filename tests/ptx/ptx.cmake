# Compares every form of PTX's scalar and matrix instructions with the test's own calculation. The program runs on any
# libcuda; tools/gpu-check runs it on the simulated GPU and on NVIDIA's driver, and compares the results.
add_executable(ptx_forms
  ${CMAKE_CURRENT_LIST_DIR}/driver.cc
  ${CMAKE_CURRENT_LIST_DIR}/form.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_async.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_atomic.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_bits.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_compare.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_control.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_convert.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_float.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_half.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_integer.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_memory.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_mma.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_stack.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_tile.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_warp.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_wide.cc
  ${CMAKE_CURRENT_LIST_DIR}/forms_wmma.cc
  ${CMAKE_CURRENT_LIST_DIR}/matrix.cc
  ${CMAKE_CURRENT_LIST_DIR}/number.cc
  ${CMAKE_CURRENT_LIST_DIR}/run.cc)
set_target_properties(ptx_forms PROPERTIES IVGPU_MERGE OFF)
target_link_libraries(ptx_forms PRIVATE ivgpu_options ivgpu_cuda ${CMAKE_DL_LIBS})
# The references do exact arithmetic millions of times, so they are always optimised.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/matrix.cc ${CMAKE_CURRENT_LIST_DIR}/number.cc
                            ${CMAKE_CURRENT_LIST_DIR}/run.cc PROPERTIES COMPILE_OPTIONS "${IVGPU_OPTIMISED}")

# One test per instruction set that the interpreter is built for. If the processor lacks an instruction set, the
# interpreter uses the next lower one. With a sanitizer, there is only one instruction set.
set(isas base v3 v4)
if(IVGPU_SANITIZE OR IVGPU_MERGE_RUN)
  set(isas base)
endif()
foreach(isa ${isas})
  add_test(NAME unit.ptx_forms_${isa}
           COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:ptx_forms> --cuda $<TARGET_FILE:simgpu> --table ${CMAKE_CURRENT_LIST_DIR}/../data/ptx_forms.csv)
  set_tests_properties(unit.ptx_forms_${isa} PROPERTIES LABELS "unit;thorough" ENVIRONMENT IVGPU_SIMGPU_ISA=${isa})
endforeach()

# Compiles the kernels with nvcc, in both PTX spellings that it emits and for the newest target that the simulated GPU
# accepts.
if(NOT IVGPU_SANITIZE)
  set(kernels ${CMAKE_CURRENT_BINARY_DIR}/ptx_kernels)
  file(MAKE_DIRECTORY ${kernels})
  set(texts)
  foreach(name floats integers matrices stacks surfaces textures threads)
    foreach(arch 75 90 120)
      set(output ${kernels}/${name}_${arch}.ptx)
      add_custom_command(
        OUTPUT ${output}
        COMMAND ${IVGPU_NVCC} -std=c++17 -ptx -arch=compute_${arch} -o ${output} ${CMAKE_CURRENT_LIST_DIR}/kernels/${name}.cu
        DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kernels/${name}.cu
        COMMENT "PTX of ${name}.cu for compute_${arch}"
        VERBATIM)
      list(APPEND texts ${output})
    endforeach()
  endforeach()
  add_custom_target(ptx_kernels ALL DEPENDS ${texts})
  add_executable(ptx_load ${CMAKE_CURRENT_LIST_DIR}/driver.cc ${CMAKE_CURRENT_LIST_DIR}/load.cc)
  target_link_libraries(ptx_load PRIVATE ivgpu_options ivgpu_cuda ${CMAKE_DL_LIBS})
  add_test(NAME unit.ptx_kernels COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:ptx_load> $<TARGET_FILE:simgpu> ${texts})
  set_tests_properties(unit.ptx_kernels PROPERTIES LABELS unit)
endif()
