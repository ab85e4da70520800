# The CUDA Toolkit: cuda.h for the project, nvcc for the test programs.
find_program(IVGPU_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(NOT IVGPU_NVCC)
  message(FATAL_ERROR "nvcc was not found: install the CUDA Toolkit 13 (NVIDIA's package cuda-toolkit-13-0) or put its "
                      "bin folder into PATH.")
endif()
get_filename_component(IVGPU_CUDA_BIN "${IVGPU_NVCC}" REALPATH)
get_filename_component(IVGPU_CUDA_BIN "${IVGPU_CUDA_BIN}" DIRECTORY)
find_path(IVGPU_CUDA_INCLUDE cuda.h HINTS ${IVGPU_CUDA_BIN}/../include ${IVGPU_CUDA_BIN}/../targets/x86_64-linux/include
          NO_DEFAULT_PATH REQUIRED)

# cuda.h, as a system header: its warnings are not ours.
add_library(ivgpu_cuda INTERFACE)
target_include_directories(ivgpu_cuda SYSTEM INTERFACE ${IVGPU_CUDA_INCLUDE})
