// cuDNN: a convolution forward and backward with explicitly chosen algorithms, pooling, softmax, normalisation and an
// activation.
#include <cudnn.h>

#include "tests/conformance/library.h"

namespace {

constexpr int images = 4, channels = 8, side = 20, filters = 16, width = 3;
constexpr size_t in_count = size_t{images} * channels * side * side, out_count = size_t{images} * filters * side * side,
                 filter_count = size_t{filters} * channels * width * width;
const float one = 1, zero = 0;

cudnnTensorDescriptor_t tensor(int n, int c, int h, int w) {
  cudnnTensorDescriptor_t shape = nullptr;
  CHECK_LIBRARY(cudnnCreateTensorDescriptor(&shape));
  CHECK_LIBRARY(cudnnSetTensor4dDescriptor(shape, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  return shape;
}

// Computes one element of the convolution on the processor.
double place(const std::vector<float>& in, const std::vector<float>& filter, int image, int out, int y, int x) {
  double sum = 0;
  for (int c = 0; c < channels; ++c)
    for (int dy = 0; dy < width; ++dy)
      for (int dx = 0; dx < width; ++dx) {
        const int row = y + dy - 1, column = x + dx - 1;
        if (row < 0 || row >= side || column < 0 || column >= side) continue;
        sum += static_cast<double>(in[static_cast<size_t>(((image * channels + c) * side + row) * side + column)]) *
               static_cast<double>(filter[static_cast<size_t>(((out * channels + c) * width + dy) * width + dx)]);
      }
  return sum;
}

float* convolution(cudnnHandle_t dnn) {
  const auto in = library::numbers<float>(in_count, 1), filter = library::numbers<float>(filter_count, 2);
  float *din = check::device_copy(in), *dfilter = check::device_copy(filter),
        *dout = check::device_buffer<float>(out_count);
  const auto in_shape = tensor(images, channels, side, side), out_shape = tensor(images, filters, side, side);
  cudnnFilterDescriptor_t filter_shape = nullptr;
  cudnnConvolutionDescriptor_t form = nullptr;
  CHECK_LIBRARY(cudnnCreateFilterDescriptor(&filter_shape));
  CHECK_LIBRARY(
      cudnnSetFilter4dDescriptor(filter_shape, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, width, width));
  CHECK_LIBRARY(cudnnCreateConvolutionDescriptor(&form));
  CHECK_LIBRARY(cudnnSetConvolution2dDescriptor(form, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK_LIBRARY(cudnnSetConvolutionMathType(form, CUDNN_FMA_MATH));
  size_t size = 0;
  const auto way = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  CHECK_LIBRARY(cudnnGetConvolutionForwardWorkspaceSize(dnn, in_shape, filter_shape, form, out_shape, way, &size));
  CHECK_LIBRARY(cudnnConvolutionForward(dnn, &one, in_shape, din, filter_shape, dfilter, form, way,
                                        check::device_buffer<char>(size + 1), size, &zero, out_shape, dout));
  const auto out = check::host_copy(dout, out_count);
  for (int i : {0, 1, 17, 399}) {
    const int image = i % images, channel = i % filters, y = i % side, x = i / side;
    const double right = place(in, filter, image, channel, y, x);
    const double got = out[static_cast<size_t>(((image * filters + channel) * side + y) * side + x)];
    CHECK_THAT(std::fabs(got - right) < 1e-4, "convolution: %g and not %g.", got, right);
  }
  library::rounded("convolution", out);

  float *din_slope = check::device_buffer<float>(in_count), *dfilter_slope = check::device_buffer<float>(filter_count);
  const auto data_way = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
  CHECK_LIBRARY(
      cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, filter_shape, out_shape, form, in_shape, data_way, &size));
  CHECK_LIBRARY(cudnnConvolutionBackwardData(dnn, &one, filter_shape, dfilter, out_shape, dout, form, data_way,
                                             check::device_buffer<char>(size + 1), size, &zero, in_shape, din_slope));
  const auto filter_way = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  CHECK_LIBRARY(
      cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, in_shape, out_shape, form, filter_shape, filter_way, &size));
  CHECK_LIBRARY(cudnnConvolutionBackwardFilter(dnn, &one, in_shape, din, out_shape, dout, form, filter_way,
                                               check::device_buffer<char>(size + 1), size, &zero, filter_shape,
                                               dfilter_slope));
  // The inner products <out, conv(in)>, <in, gradient of in> and <filter, gradient of the filter> are equal, since out
  // is conv(in).
  const auto inner = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  };
  const double whole = inner(out, out);
  for (double part :
       {inner(in, check::host_copy(din_slope, in_count)), inner(filter, check::host_copy(dfilter_slope, filter_count))})
    CHECK_THAT(std::fabs(part - whole) < 1e-4 * whole, "convolution backward: %g and not %g.", part, whole);
  library::rounded("slope of the images", check::host_copy(din_slope, in_count));
  library::rounded("slope of the filters", check::host_copy(dfilter_slope, filter_count));
  return dout;
}

void the_rest(cudnnHandle_t dnn, float* data) {
  const auto shape = tensor(images, filters, side, side), half = tensor(images, filters, side / 2, side / 2);
  cudnnPoolingDescriptor_t pooling = nullptr;
  float *pooled = check::device_buffer<float>(out_count / 4), *other = check::device_buffer<float>(out_count);
  CHECK_LIBRARY(cudnnCreatePoolingDescriptor(&pooling));
  CHECK_LIBRARY(
      cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  CHECK_LIBRARY(cudnnPoolingForward(dnn, pooling, &one, shape, data, &zero, half, pooled));
  library::rounded("pooled", check::host_copy(pooled, out_count / 4));

  CHECK_LIBRARY(cudnnSoftmaxForward(dnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, shape, data, &zero,
                                    shape, other));
  const auto shares = check::host_copy(other, out_count);
  double sum = 0;
  for (float share : shares) sum += static_cast<double>(share);
  CHECK_THAT(std::fabs(sum - images * side * side) < 0.01, "softmax adds up to %g.", sum);
  library::rounded("softmax", shares);

  const auto each = tensor(1, filters, 1, 1);
  const float* ones = check::device_copy(std::vector<float>(filters, 1.0f));
  float *mean = check::device_buffer<float>(filters), *spread = check::device_buffer<float>(filters);
  CHECK_LIBRARY(cudnnBatchNormalizationForwardTraining(dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, shape, data, shape,
                                                       other, each, ones, ones, 1, mean, spread, 1e-5, nullptr,
                                                       nullptr));
  const auto normal = check::host_copy(other, out_count);
  sum = 0;
  for (float value : normal) sum += static_cast<double>(value);
  CHECK_THAT(std::fabs(sum / out_count - 1) < 1e-3, "normalised to a mean of %g.", sum / out_count);
  library::rounded("normalised", normal);

  cudnnActivationDescriptor_t activation = nullptr;
  CHECK_LIBRARY(cudnnCreateActivationDescriptor(&activation));
  CHECK_LIBRARY(cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_TANH, CUDNN_PROPAGATE_NAN, 0));
  CHECK_LIBRARY(cudnnActivationForward(dnn, activation, &one, shape, data, &zero, shape, other));
  library::rounded("tanh", check::host_copy(other, out_count));
}

}  // namespace

int main() {
  cudnnHandle_t dnn = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_LIBRARY(cudnnCreate(&dnn));
  CHECK_LIBRARY(cudnnSetStream(dnn, stream));
  the_rest(dnn, convolution(dnn));
  CHECK_LIBRARY(cudnnDestroy(dnn));
}
