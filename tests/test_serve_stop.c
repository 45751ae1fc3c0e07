/* The moment at which a server stops to listen: whoever could connect is answered. The system call
 * that ends the listening is made slow here, so that clients connect just before it. */
#define _GNU_SOURCE
#include "support.h"

#include "base/hash.h"
#include "model/model.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLIENTS = 4, SLOW_MICROSECONDS = 100000 };

int shutdown(int fd, int how)
{
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens) usleep(SLOW_MICROSECONDS);
    return (int)syscall(SYS_shutdown, fd, how);
}

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    (void)model, (void)scores, (void)scratch, (void)error;
    for (size_t i = 0; i < count; i++) labels[i] = sf_hash(texts[i].bytes, texts[i].length, 0) % 2;
    return SAFER_OK;
}

typedef struct client {
    pthread_t thread;
    uint16_t port;
    int answered, lost;
} client;

/* A request on a connection of its own: 1 answered, 0 nobody listens, -1 accepted and lost. A client that waits for
 * the system's answer gives up after a while: it was not accepted. */
static int ask(uint16_t port)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_usec = 300000}, sizeof(struct timeval));
    int result = 0;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
        const ssize_t sent = send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
        const ssize_t got = sent < 0 ? -1 : recv(fd, answer, sizeof answer, MSG_WAITALL);
        result = got >= 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0 ? 1 : -1;
    }
    close(fd);
    return result;
}

static void *ask_until_refused(void *argument)
{
    client *c = argument;
    for (int result; (result = ask(c->port)) != 0;) *(result > 0 ? &c->answered : &c->lost) += 1;
    return NULL;
}

/* Whether the system can drop what would begin a connection. Some sandboxes cannot. */
static int can_filter(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
    struct sock_fprog program = {.len = 1, .filter = &all};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int can = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
    if (fd >= 0) close(fd);
    return can;
}

static void test_stop(void **state)
{
    static const char table[] = "good\tgreat fine superb\n";
    static const sf_model_class stand_in = {.arch = "stand-in", .classify = classify};
    static char *names[] = {"neg", "pos"};
    safer_model model = {.class = &stand_in, .classes = 2, .labels = names};
    safer_lexicon *lexicon;
    safer_server *server;
    safer_error error = {0};
    safer_lexicon_options import = safer_lexicon_options_default();
    safer_serve_options options = safer_serve_options_default();
    (void)state;
    if (!can_filter()) skip();
    import.table = write_temporary("table.tsv", table, sizeof table - 1);
    import.kernel = "topk:3";
    assert_ok(safer_lexicon_import(&lexicon, &import, NULL, &error));
    options.port = 0;
    assert_ok(safer_server_start(&server, &model, lexicon, NULL, &options, &error));
    client clients[CLIENTS] = {0};
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].port = safer_server_port(server);
        assert_int_equal(pthread_create(&clients[i].thread, NULL, ask_until_refused, &clients[i]), 0);
    }
    usleep(100000);
    safer_server_stop(server);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_true(clients[i].answered > 0);
        assert_int_equal(clients[i].lost, 0);
    }
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
