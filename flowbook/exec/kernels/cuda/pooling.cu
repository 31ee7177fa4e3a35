// Gradients of pools of maxima: each where the first maximum of its window lies, as
// flowbook/graph/ops/windows/pooling_kernels.py has it, and added up in the same order.
//
// A thread makes one element of the result after another, from the windows that it lies in. Nothing
// is included, so that NVRTC compiles it by itself.

typedef unsigned long long Wide;

struct Windows {  // Along one axis.
    int input, size, stride, dilation, before, output;

    // The window in which an element of the input is at place `k`; -1 if there is none.
    __device__ int of(int element, int k) const {
        int start = element + before - k * dilation;
        return start < 0 || start % stride || start / stride >= output ? -1 : start / stride;
    }

    // The element of the input at place `k` of a window; -1 if that is padding.
    __device__ int at(int window, int k) const {
        int element = window * stride - before + k * dilation;
        return element < 0 || element >= input ? -1 : element;
    }
};

template <typename Number>
__device__ bool is_maximum(Number value, Number maximum) {
    return value == maximum || (value != value && maximum != maximum);
}

// Whether no place before (row, column) of a window holds its maximum. `input` begins with the
// image's elements of one channel.
template <typename Number>
__device__ bool is_first(const Number* input, Number maximum, const Windows& rows,
                         const Windows& columns, int channels, int top, int left, int row,
                         int column) {
    for (int i = 0; i <= row; ++i) {
        int y = rows.at(top, i);
        if (y < 0) continue;
        for (int j = 0; j < (i == row ? column : columns.size); ++j) {
            int x = columns.at(left, j);
            if (x < 0) continue;
            if (is_maximum(input[((Wide)y * columns.input + x) * channels], maximum)) return false;
        }
    }
    return true;
}

template <typename Number>
__device__ void max_gradient(Number* result, const Number* input, const Number* output,
                             const Number* slopes, Wide count, int channels, Windows rows,
                             Windows columns) {
    Wide step = (Wide)gridDim.x * blockDim.x;
    for (Wide n = (Wide)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        int channel = (int)(n % channels);
        Wide place = n / channels;
        int x = (int)(place % columns.input);
        place /= columns.input;
        int y = (int)(place % rows.input);
        Wide image = place / rows.input;
        const Number* first = input + image * rows.input * columns.input * channels + channel;
        Number value = input[n], sum = 0;
        for (int row = 0; row < rows.size; ++row) {
            int top = rows.of(y, row);
            if (top < 0) continue;
            for (int column = 0; column < columns.size; ++column) {
                int left = columns.of(x, column);
                if (left < 0) continue;
                Wide window = ((image * rows.output + top) * columns.output + left) * channels;
                Number maximum = output[window + channel];
                if (is_maximum(value, maximum) &&
                    is_first(first, maximum, rows, columns, channels, top, left, row, column)) {
                    sum += slopes[window + channel];
                }
            }
        }
        result[n] = sum;
    }
}

#define DEFINE(name, Number)                                                                       \
    extern "C" __global__ void name(                                                               \
        Number* result, const Number* input, const Number* output, const Number* slopes,           \
        Wide count, int channels, int height, int rows, int row_stride, int row_dilation,          \
        int above, int windows_down, int width, int columns, int column_stride,                    \
        int column_dilation, int beside, int windows_across) {                                     \
        max_gradient(result, input, output, slopes, count, channels,                               \
                     Windows{height, rows, row_stride, row_dilation, above, windows_down},         \
                     Windows{width, columns, column_stride, column_dilation, beside,               \
                             windows_across});                                                     \
    }

DEFINE(max_gradient_float32, float)
DEFINE(max_gradient_float64, double)
