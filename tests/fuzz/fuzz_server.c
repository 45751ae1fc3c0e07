/* Requests to a server, over loopback. The first byte says what the rest is: 0 to 3, the body of a POST to one of the
 * routes that work, with the right head; else all that a client sends before it ends its side and soon leaves. The
 * server answers with a status of its own or closes, and still answers the next client. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"
#include "serve/routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

static safer_server *server;
static safer_lexicon *lexicon;
static safer_model *model;

static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context;
    for (size_t i = 0; i < count; i++) labels[i] = lengths[i] && memmem(texts[i], lengths[i], "goo", 3) != NULL;
    return 0;
}

static void stop(void)
{
    safer_server_stop(server);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
}

static void start(void)
{
    static const char table[] = "good\tgreat fine\nbad\tawful poor\nfilm\tmovie\n";
    static const char *const names[] = {"neg", "pos"};
    safer_lexicon_options options = safer_lexicon_options_default();
    safer_remote_options remote = safer_remote_options_default();
    safer_certify_options certify = safer_certify_options_default();
    safer_serve_options serve = safer_serve_options_default();
    safer_error error = {0};
    options.table = fuzz_write("table.tsv", table, sizeof table - 1);
    options.kernel = "topk:2";
    remote.labels = names;
    remote.label_count = 2;
    remote.model_name = "fuzz";
    certify.n = 50;
    certify.threads = 1;
    serve.port = 0;
    serve.max_body = 4096;
    serve.max_text = 400;
    serve.max_texts = 4;
    require(safer_lexicon_import(&lexicon, &options, NULL, NULL) == SAFER_OK);
    require(safer_model_from_callback(&model, classify, NULL, &remote, NULL) == SAFER_OK);
    if (safer_server_start(&server, model, lexicon, &certify, &serve, &error) != SAFER_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    atexit(stop);
}

/* Sends it and reads all that comes back or, with `leaves`, ends its side and reads what comes back without a break
 * of 20 ms. Returns the bytes kept in `answer`. */
static size_t ask(const char *bytes, size_t size, int leaves, char answer[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(safer_server_port(server))};
    const struct linger now = {1, 0}; /* no port is kept waiting */
    const struct timeval patience = {leaves ? 0 : 15, leaves ? 20000 : 0};
    char more[4096];
    size_t kept = 0;
    ssize_t got;
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(client >= 0 && connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    require(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    for (size_t sent = 0; sent < size;) {
        const ssize_t put = send(client, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (put <= 0) break; /* it has closed */
        sent += (size_t)put;
    }
    if (leaves) (void)shutdown(client, SHUT_WR);
    while ((got = recv(client, more, sizeof more, 0)) > 0 || (got < 0 && errno == EINTR))
        for (ssize_t i = 0; i < got && kept < 63; i++) answer[kept++] = more[i];
    require(got == 0 || errno == ECONNRESET || (leaves && errno == EAGAIN));
    answer[kept] = '\0';
    close(client);
    return kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char healthy[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[64], head[300];
    if (!size || size > 20000) return 0;
    if (!server) start();
    const char *body = (const char *)data + 1;
    if (data[0] <= SF_ROUTE_WORDS) {
        const int length = snprintf(head, sizeof head,
                                    "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                    "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                                    sf_routes[data[0]].path, size - 1);
        char *all = malloc((size_t)length + size);
        require(all);
        memcpy(all, head, (size_t)length);
        memcpy(all + length, body, size - 1);
        const size_t kept = ask(all, (size_t)length + size - 1, 0, answer);
        free(all);
        const int status = kept > 12 ? atoi(answer + 9) : 0;
        require(status == 200 || status == 400 || status == 413);
    } else if (ask(body, size - 1, 1, answer)) {
        require(strncmp(answer, "HTTP/1.", 7) == 0);
    }
    if (data[0] % 16 == 15) require(ask(healthy, sizeof healthy - 1, 0, answer) && strstr(answer, " 200 "));
    return 0;
}
