// Philox 4x32-10 and what is made of its words: the streams of flowbook/graph/numerics/random, where
// everything here is explained. Integers and uniforms are the same there, bit for bit.
//
// A thread makes the numbers of one block of four words after another. Nothing is included, so that
// NVRTC compiles it by itself.

typedef unsigned int Word;
typedef unsigned long long Wide;

struct Stream {
    Word key0, key1;
    Wide low, high;  // The counter of the first block, in halves.
};

struct Block {
    Word word[4];
};

__device__ Block block_of(Stream stream, Wide offset) {
    Wide position = stream.low + offset;
    Wide upper = stream.high + (position < offset);
    Word a = (Word)position, b = (Word)(position >> 32);
    Word c = (Word)upper, d = (Word)(upper >> 32);
    Word key0 = stream.key0, key1 = stream.key1;
    for (int turn = 0; turn < 10; ++turn) {
        Wide first = (Wide)a * 0xD2511F53u, second = (Wide)c * 0xCD9E8D57u;
        a = (Word)(second >> 32) ^ b ^ key0;
        c = (Word)(first >> 32) ^ d ^ key1;
        b = (Word)second;
        d = (Word)first;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return Block{{a, b, c, d}};
}

// What becomes of a block: `width` numbers.

struct Uniform16 {  // The values of float16, in float.
    typedef float Number;
    static const int width = 4;
    __device__ void operator()(Block block, Number* made) const {
        for (int i = 0; i < 4; ++i) made[i] = (float)(block.word[i] & 0x3FFu) * 0x1p-10f;
    }
};

struct Uniform32 {
    typedef float Number;
    static const int width = 4;
    __device__ void operator()(Block block, Number* made) const {
        for (int i = 0; i < 4; ++i) made[i] = (float)(block.word[i] & 0x7FFFFFu) * 0x1p-23f;
    }
};

struct Uniform64 {
    typedef double Number;
    static const int width = 2;
    __device__ void operator()(Block block, Number* made) const {
        for (int i = 0; i < 2; ++i) {
            Wide bits = (Wide)(block.word[2 * i] & 0xFFFFFu) << 32 | block.word[2 * i + 1];
            made[i] = (double)bits * 0x1p-52;
        }
    }
};

struct Normal32 {
    typedef float Number;
    static const int width = 4;
    __device__ void operator()(Block block, Number* made) const {
        float uniform[4];
        Uniform32()(block, uniform);
        for (int i = 0; i < 4; i += 2) {
            float radius = sqrtf(-2.0f * logf(fmaxf(uniform[i], 1e-7f)));
            float angle = (float)((double)uniform[i + 1] * 6.283185307179586);
            made[i] = sinf(angle) * radius;
            made[i + 1] = cosf(angle) * radius;
        }
    }
};

struct Normal64 {
    typedef double Number;
    static const int width = 2;
    __device__ void operator()(Block block, Number* made) const {
        double uniform[2];
        Uniform64()(block, uniform);
        double radius = sqrt(-2.0 * log(fmax(uniform[0], 1e-7)));
        made[0] = sinpi(2.0 * uniform[1]) * radius;
        made[1] = cospi(2.0 * uniform[1]) * radius;
    }
};

struct Integer32 {
    typedef Word Number;
    static const int width = 4;
    Word low, span;
    __device__ void operator()(Block block, Number* made) const {
        for (int i = 0; i < 4; ++i) made[i] = block.word[i] % span + low;
    }
};

struct Integer64 {
    typedef Wide Number;
    static const int width = 2;
    Wide low, span;
    __device__ void operator()(Block block, Number* made) const {
        for (int i = 0; i < 2; ++i) {
            Wide bits = (Wide)block.word[2 * i + 1] << 32 | block.word[2 * i];
            made[i] = bits % span + low;
        }
    }
};

template <typename Maker>
__device__ void fill(typename Maker::Number* out, Wide count, Stream stream, Maker maker) {
    const Wide width = Maker::width;
    Wide stride = (Wide)gridDim.x * blockDim.x;
    Wide first = (Wide)blockIdx.x * blockDim.x + threadIdx.x;
    for (Wide block = first; block * width < count; block += stride) {
        typename Maker::Number made[Maker::width];
        maker(block_of(stream, block), made);
        for (Wide i = 0; i < width && block * width + i < count; ++i) out[block * width + i] = made[i];
    }
}

#define STREAM Word key0, Word key1, Wide low, Wide high
#define DEFINE(name, Maker)                                                             \
    extern "C" __global__ void name(Maker::Number* out, Wide count, STREAM) {           \
        fill(out, count, Stream{key0, key1, low, high}, Maker());                       \
    }
#define DEFINE_IN_BOUNDS(name, Maker)                                                   \
    extern "C" __global__ void name(Maker::Number* out, Wide count, STREAM,             \
                                    Maker::Number least, Maker::Number span) {          \
        fill(out, count, Stream{key0, key1, low, high}, Maker{least, span});            \
    }

DEFINE(uniform_float16, Uniform16)
DEFINE(uniform_float32, Uniform32)
DEFINE(uniform_float64, Uniform64)
DEFINE(normal_float32, Normal32)
DEFINE(normal_float64, Normal64)
DEFINE_IN_BOUNDS(uniform_int_int32, Integer32)
DEFINE_IN_BOUNDS(uniform_int_int64, Integer64)
