/* The plugin's table, and the devices there are. */
#include "cuda/convnet.cuh"
#include "cuda/convnet_step.cuh"
#include "cuda/encoder.cuh"
#include "cuda/fail.cuh"
#include "cuda/step.cuh"

#include <string.h>

using namespace sf;

namespace
{

safer_status count_devices(int *count, safer_error *error)
{
    *count = 0;
    const cudaError_t code = cudaGetDeviceCount(count);
    if (code == cudaErrorNoDevice) return fail(error, SAFER_SYSTEM, "there is no GPU that CUDA can use");
    if (code == cudaErrorInsufficientDriver) {
        int driver = 0, runtime = 0;
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (!driver) return fail(error, SAFER_SYSTEM, "there is no NVIDIA driver");
        return fail(error, SAFER_SYSTEM, "the NVIDIA driver is for CUDA %d.%d, and %d.%d is needed", driver / 1000,
                    driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    return check(code, "counting devices", error);
}

safer_status describe(sf_device_info *out, int device, safer_error *error)
{
    cudaDeviceProp found;
    size_t free_memory = 0, memory = 0;
    int driver = 0;
    *out = {};
    SF_CUDA_TRY(cudaDriverGetVersion(&driver), "asking for the driver");
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    SF_CUDA_TRY(cudaGetDeviceProperties(&found, device), "describing a device");
    snprintf(out->name, sizeof out->name, "%s", found.name);
    snprintf(out->instructions, sizeof out->instructions, "sm_%d%d", found.major, found.minor);
    out->memory = found.totalGlobalMem;
    if (found.major < 8)
        return fail(error, SAFER_SYSTEM, "%s has compute capability %d.%d; 8.0 is needed", found.name, found.major,
                    found.minor);
    SF_CUDA_TRY(cudaSetDevice(device), "choosing the device");
    SF_CUDA_TRY(cudaMemGetInfo(&free_memory, &memory), "asking for its memory");
    out->free_memory = free_memory;
    /* cuBLASLt chooses products by the device as a whole, so its name is part of what decides the bits. */
    const size_t library = cublasLtGetVersion();
    snprintf(out->arithmetic, sizeof out->arithmetic, "bf16 cuda %s cublaslt %zu.%zu.%zu %s", out->instructions,
             library / 10000, library / 100 % 100, library % 100, out->name);
    return SAFER_OK;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const sf_device_table *sf_device_plugin(void)
{
    static const sf_device_table table = {SAFER_VERSION,
                                          sizeof table,
                                          count_devices,
                                          describe,
                                          sf_cuda_net_new,
                                          sf_cuda_net_free,
                                          sf_cuda_answer,
                                          sf_cuda_means,
                                          sf_cuda_step_new,
                                          sf_cuda_step_free,
                                          sf_cuda_step_write,
                                          sf_cuda_step_read,
                                          sf_cuda_step_gradient,
                                          sf_cuda_step_update,
                                          sf_cuda_step_answer,
                                          sf_cuda_convnet_new,
                                          sf_cuda_convnet_free,
                                          sf_cuda_convnet_answer,
                                          sf_cuda_convnet_step_new,
                                          sf_cuda_convnet_step_free,
                                          sf_cuda_convnet_step_write,
                                          sf_cuda_convnet_step_read,
                                          sf_cuda_convnet_step_gradient,
                                          sf_cuda_convnet_step_update,
                                          sf_cuda_convnet_step_answer};
    return &table;
}
