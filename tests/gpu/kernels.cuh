/* What the tests of kernels share: numbers, arrays here and on the device, comparisons. */
#ifndef TESTS_GPU_KERNELS_CUH
#define TESTS_GPU_KERNELS_CUH

#include "cuda/numbers.cuh"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

namespace
{

using namespace sf;

int failures = 0;

void need(cudaError_t code, const char *what)
{
    if (code == cudaSuccess) return;
    fprintf(stderr, "test_kernels: %s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}

uint64_t state = 1;
uint32_t bits()
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
float noise() { return (float)((double)bits() / 2147483648.0 - 1); }
float value(float x) { return x; }
float value(bf16 x) { return __bfloat162float(x); }

/* An array here and on the device. */
template <typename T> struct both {
    std::vector<T> here;
    T *there;
    explicit both(size_t count) : here(count)
    {
        need(cudaMalloc(&there, count * sizeof(T)), "taking memory");
        need(cudaMemset(there, 0xff, count * sizeof(T)), "filling memory"); /* not a number, where nothing is written */
    }
    both(const both &) = delete;
    ~both() { cudaFree(there); }
    void send() { need(cudaMemcpy(there, here.data(), here.size() * sizeof(T), cudaMemcpyHostToDevice), "copying"); }
    void get() { need(cudaMemcpy(here.data(), there, here.size() * sizeof(T), cudaMemcpyDeviceToHost), "copying"); }
    size_t size() const { return here.size(); }
};

template <typename T> void fill(both<T> &x, float scale = 1, float middle = 0)
{
    for (T &v : x.here) v = T(middle + scale * noise());
    x.send();
}

/* All numbers are within `off` of the reference, which itself is about `size`. */
template <typename T>
void compare(const std::string &name, both<T> &found, const std::vector<double> &expected, double off)
{
    need(cudaDeviceSynchronize(), name.c_str());
    found.get();
    double worst = 0, size = 0;
    for (size_t i = 0; i < expected.size(); i++) {
        const double far = fabs((double)value(found.here[i]) - expected[i]);
        worst = std::max(worst, far == far ? far : 1e300);
        size = std::max(size, fabs(expected[i]));
    }
    const bool ok = worst <= off * (size + 1e-30);
    printf("%-44s %8zu numbers up to %-10.4g off by %.2e of that%s\n", name.c_str(), expected.size(), size,
           worst / (size + 1e-30), ok ? "" : ": TOO FAR");
    failures += !ok;
}

const double BF16 = 0x1p-8, F32 = 1e-5; /* one rounding of a bf16; sums of some hundred numbers in f32 */

} // namespace
#endif
