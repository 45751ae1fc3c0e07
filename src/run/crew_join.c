/* Joining a crew over MPI, which a plugin brings. */
#include "base/plugin.h"
#include "run/crew.h"

safer_status safer_crew_join(safer_crew **out, double timeout, safer_crew_lost lost, void *context, safer_error *error)
{
    static const sf_plugin mpi = {"libsafer_mpi.so", "sf_transport_plugin", "MPI", sizeof(sf_transport_table)};
    const void *table;
    if (!(timeout >= 0 && timeout <= 1e6))
        return sf_fail(error, SAFER_INVALID, "`crew.timeout`: %g is no number of seconds, at most a million", timeout);
    safer_status status = sf_plugin_load(&table, &mpi, error);
    if (status != SAFER_OK) return status;
    return sf_crew_new(out, table, NULL, timeout > 0 ? timeout : SF_CREW_TIMEOUT, lost, context, error);
}
