/* safer devices */
#include "verbs.h"

#include <string.h>

static json_t *text_or_null(const char *text) { return *text ? json_string(text) : json_null(); }

static json_t *device_json(const safer_device *d)
{
    const int cpu = strcmp(d->name, "cpu") == 0;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", d->name, "hardware",
                     text_or_null(d->hardware), "instructions", text_or_null(d->instructions), "threads",
                     cpu ? json_integer(d->threads) : json_null(), "memory",
                     d->memory ? json_integer((json_int_t)d->memory) : json_null(), "free_memory",
                     cpu || *d->reason ? json_null() : json_integer((json_int_t)d->free_memory), "driver",
                     text_or_null(d->driver), "arithmetic", text_or_null(d->arithmetic), "reason",
                     text_or_null(d->reason));
}

static void print_device(const safer_device *d)
{
    printf("%-8s ", d->name);
    if (*d->hardware) cli_put(d->hardware);
    if (*d->instructions) printf(", %s", d->instructions);
    if (d->threads) printf(", %s thread%s", cli_count((uint64_t)d->threads), d->threads == 1 ? "" : "s");
    if (*d->driver && !*d->reason)
        printf(", %.1f of %.1f GB free, driver for %s", (double)d->free_memory * 1e-9, (double)d->memory * 1e-9,
               d->driver);
    if (*d->reason) {
        printf("%scannot be used: ", *d->hardware ? "; " : "");
        cli_put(d->reason);
    }
    putchar('\n');
}

static void list(cli_options *options, void *into)
{
    (void)options;
    (void)into;
}

static int run(void *from, char **arguments, size_t count)
{
    safer_device device;
    json_t *all = json_array();
    (void)from, (void)arguments, (void)count;
    for (size_t i = 0; safer_device_get(&device, i); i++)
        if (cli_settings()->json)
            cli_append(all, device_json(&device));
        else
            print_device(&device);
    if (cli_settings()->json) cli_print_json(json_pack("{s:O}", "devices", all));
    json_decref(all);
    return CLI_DONE;
}

const cli_verb cli_devices = {
    .name = "devices",
    .brief = "what can compute here: the CPU, GPUs",
    .usage = "[--json]",
    .summary = "Lists the names that --device takes on this machine, what stands behind each, or why it cannot\n"
               "be used.",
    .examples = "  safer devices\n"
                "  safer devices --json\n",
    .request_size = 1,
    .list = list,
    .run = run,
};
