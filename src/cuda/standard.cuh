/* Standardised weights, and the gradient of what they are made from: train/charcnn_scale.h says what that is.
 *
 * An output's inputs are a column of a matrix (inputs, outputs). Blocks have STANDARD_ROWS rows of 256 columns; sums
 * over columns are added up block by block in order, as on the CPU. All matrices at once: the grid's z. */
#ifndef SF_CUDA_STANDARD_CUH
#define SF_CUDA_STANDARD_CUH

#include "cuda/numbers.cuh"

namespace sf
{

enum { STANDARDS = 7, STANDARD_ROWS = 128 };

struct standard {
    size_t offset, gains; /* among what is trained */
    int inputs, outputs;
    double share;           /* of its weights' mean square */
    float *sums, *products; /* (blocks of rows, outputs) */
    float *mean, *scale;    /* (outputs): W = (V - mean) scale */
    double *spread;         /* (outputs): the root mean square of V - mean */
    float *a, *b, *c;       /* (outputs): dV = a dW - b V + c */
};

struct standards {
    standard m[STANDARDS];
};

/* Where a thread is in its matrix: its column and rows; 0: nowhere. */
__device__ inline int standard_place(int *column, int *first, int *last, const standard *m)
{
    *column = blockIdx.x * 256 + threadIdx.x;
    *first = blockIdx.y * STANDARD_ROWS;
    *last = min(m->inputs, *first + STANDARD_ROWS);
    return *column < m->outputs && *first < *last;
}

/* Sums of x and of x times V, of every block. */
static __global__ void __launch_bounds__(256)
    standard_sums(const __grid_constant__ standards all, const float *x, const float *v)
{
    const standard *m = &all.m[blockIdx.z];
    int column, first, last;
    if (!standard_place(&column, &first, &last, m)) return;
    float sum = 0, product = 0;
    for (int i = first; i < last; i++) {
        const size_t at = m->offset + (size_t)i * m->outputs + column;
        sum += x[at];
        product += x[at] * v[at];
    }
    m->sums[(size_t)blockIdx.y * m->outputs + column] = sum;
    m->products[(size_t)blockIdx.y * m->outputs + column] = product;
}

__device__ inline void standard_add(double *sum, double *product, const standard *m, int column)
{
    *sum = *product = 0;
    for (int k = 0; k * STANDARD_ROWS < m->inputs; k++) {
        *sum += (double)m->sums[(size_t)k * m->outputs + column];
        *product += (double)m->products[(size_t)k * m->outputs + column];
    }
}

static __global__ void __launch_bounds__(256) standard_numbers(const __grid_constant__ standards all, const float *v)
{
    const standard *m = &all.m[blockIdx.z];
    const int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= m->outputs) return;
    double sum, squares;
    standard_add(&sum, &squares, m, n);
    const double mean = sum / m->inputs, spread = sqrt(fmax(squares / m->inputs - mean * mean, 1e-12));
    m->mean[n] = (float)mean;
    m->spread[n] = spread;
    m->scale[n] = (float)((double)v[m->gains + n] * sqrt(m->share) / spread);
}

/* W, rounded. */
static __global__ void __launch_bounds__(256)
    standard_write(bf16 *rounded, const __grid_constant__ standards all, const float *v)
{
    const standard *m = &all.m[blockIdx.z];
    int column, first, last;
    if (!standard_place(&column, &first, &last, m)) return;
    const float mean = m->mean[column], scale = m->scale[column];
    for (int i = first; i < last; i++) {
        const size_t at = m->offset + (size_t)i * m->outputs + column;
        rounded[at] = __float2bfloat16_rn((v[at] - mean) * scale);
    }
}

/* The gradient of gains, and the numbers of dV, from the sums of dW. */
static __global__ void __launch_bounds__(256)
    standard_numbers_back(float *gradient, const __grid_constant__ standards all, const float *v)
{
    const standard *m = &all.m[blockIdx.z];
    const int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= m->outputs) return;
    double sum, products;
    standard_add(&sum, &products, m, n);
    const double inputs = m->inputs, mean = (double)m->mean[n], spread = m->spread[n], k = sqrt(m->share);
    const double along = (products - mean * sum) / (inputs * spread);
    const double a = (double)v[m->gains + n] * k / spread, b = a * along / spread;
    gradient[m->gains + n] = (float)(k * inputs * along);
    m->a[n] = (float)a;
    m->b[n] = (float)b;
    m->c[n] = (float)(b * mean - a * sum / inputs);
}

/* dW becomes dV. */
static __global__ void __launch_bounds__(256)
    standard_write_back(float *gradient, const __grid_constant__ standards all, const float *v)
{
    const standard *m = &all.m[blockIdx.z];
    int column, first, last;
    if (!standard_place(&column, &first, &last, m)) return;
    const float a = m->a[column], b = m->b[column], c = m->c[column];
    for (int i = first; i < last; i++) {
        const size_t at = m->offset + (size_t)i * m->outputs + column;
        gradient[at] = a * gradient[at] - b * v[at] + c;
    }
}

/* turned (F, width, F), by input, tap and output, with the taps reversed, from weight (width, F, F), by tap, input and
 * output: what the way back through a convolution multiplies by. By 256 threads a block. */
static __global__ void __launch_bounds__(256) turn_taps(bf16 *turned, const bf16 *weight, int F, int width)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x, output = i % F, tap = i / F % width, input = i / F / width;
    if (input >= (size_t)F) return;
    turned[i] = weight[((width - 1 - tap) * F + input) * F + output];
}

} // namespace sf
#endif
