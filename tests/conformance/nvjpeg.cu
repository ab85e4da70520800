// nvJPEG: encodes a picture on the GPU and decodes it. The result must nearly equal the picture.
#include <nvjpeg.h>

#include "tests/conformance/library.h"

namespace {

constexpr int width = 256, height = 192;

// A smooth picture, so that the compression loses little.
std::vector<unsigned char> picture() {
  std::vector<unsigned char> all;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int colour : {x / 2 + 40, y, (x + y) / 3 + 20}) all.push_back(static_cast<unsigned char>(colour));
  return all;
}

}  // namespace

int main() {
  const auto in = picture();
  cudaStream_t stream = nullptr;
  nvjpegHandle_t jpeg = nullptr;
  nvjpegEncoderState_t encoder = nullptr;
  nvjpegEncoderParams_t parameters = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_LIBRARY(nvjpegCreateSimple(&jpeg));
  CHECK_LIBRARY(nvjpegEncoderStateCreate(jpeg, &encoder, stream));
  CHECK_LIBRARY(nvjpegEncoderParamsCreate(jpeg, &parameters, stream));
  CHECK_LIBRARY(nvjpegEncoderParamsSetQuality(parameters, 95, stream));
  CHECK_LIBRARY(nvjpegEncoderParamsSetSamplingFactors(parameters, NVJPEG_CSS_444, stream));
  nvjpegImage_t image{};
  image.channel[0] = check::device_copy(in);
  image.pitch[0] = 3 * width;
  CHECK_LIBRARY(nvjpegEncodeImage(jpeg, encoder, parameters, &image, NVJPEG_INPUT_RGBI, width, height, stream));
  size_t size = 0;
  CHECK_LIBRARY(nvjpegEncodeRetrieveBitstream(jpeg, encoder, nullptr, &size, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  std::vector<unsigned char> file(size);
  CHECK_LIBRARY(nvjpegEncodeRetrieveBitstream(jpeg, encoder, file.data(), &size, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  library::exact("file", file);

  nvjpegJpegState_t decoder = nullptr;
  CHECK_LIBRARY(nvjpegJpegStateCreate(jpeg, &decoder));
  int parts = 0, widths[NVJPEG_MAX_COMPONENT], heights[NVJPEG_MAX_COMPONENT];
  nvjpegChromaSubsampling_t sampling{};
  CHECK_LIBRARY(nvjpegGetImageInfo(jpeg, file.data(), size, &parts, &sampling, widths, heights));
  CHECK_THAT(parts == 3 && widths[0] == width && heights[0] == height, "The file is of %d by %d.", widths[0],
             heights[0]);
  image.channel[0] = check::device_buffer<unsigned char>(in.size());
  CHECK_LIBRARY(nvjpegDecode(jpeg, decoder, file.data(), size, NVJPEG_OUTPUT_RGBI, &image, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  const auto out = check::host_copy(image.channel[0], in.size());
  library::check_near("picture", out, in, 0.05);
  library::exact("picture", out);
  CHECK_LIBRARY(nvjpegJpegStateDestroy(decoder));
  CHECK_LIBRARY(nvjpegEncoderParamsDestroy(parameters));
  CHECK_LIBRARY(nvjpegEncoderStateDestroy(encoder));
  CHECK_LIBRARY(nvjpegDestroy(jpeg));
}
