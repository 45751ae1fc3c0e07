/* exec: children that answer, mix, die, hang, babble and lie. Most are small programs in
 * Python or the shell; each is what some user will one day write. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/progress.h"
#include "model/remote.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static safer_error error;

static char *names[] = {(char[]){"neg"}, (char[]){"pos"}, (char[]){"other"}};
static const sf_labels labels = {.names = names, .count = 3};

/* ------------------------------------------------------------------ children */

/* Answers the number of bytes of a text modulo 3. */
#define PYTHON                                                                                                        \
    "import json, os, random, signal, sys, time\n"                                                                    \
    "def answer(request): return {'id': request['id'], 'labels': [len(t.encode()) % 3 for t in request['texts']]}\n"  \
    "def say(object): print(json.dumps(object), flush=True)\n"

/* The command that runs a Python program, which begins with the above. The system's Python
 * first: others may be reached through wrappers that take seconds to start. */
static const char *python(const char *program)
{
    static char command[600];
    static int number;
    sf_buffer text = {0};
    char name[32];
    snprintf(name, sizeof name, "child%d.py", number++);
    assert_int_equal(sf_buffer_format(&text, "%s%s", PYTHON, program), 0);
    snprintf(command, sizeof command, "PATH=/usr/bin:$PATH exec python3 -S -E %s", write_temporary(name, text.bytes, text.length));
    sf_buffer_free(&text);
    return command;
}

static const char *honest(void) { return python("for line in sys.stdin: say(answer(json.loads(line)))\n"); }

/* ---------------------------------------------------------------- the harness */

static safer_remote_options defaults(void)
{
    return (safer_remote_options){.workers = 2, .timeout = 30, .retries = 3};
}

static sf_transport open_with(const char *command, safer_remote_options options)
{
    sf_transport t;
    assert_ok(sf_exec_open(&t, command, &labels, &options, &error));
    return t;
}

static sf_transport open_one(const char *command)
{
    safer_remote_options options = defaults();
    options.workers = 1;
    return open_with(command, options);
}

static safer_status ask_strings(sf_transport *t, const char *const *texts, size_t count, int *out)
{
    sf_span spans[8];
    for (size_t i = 0; i < count; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    return t->ask(t->self, spans, count, out, NULL, &error);
}

static safer_status ask_one(sf_transport *t, const char *text)
{
    int label;
    return ask_strings(t, &text, 1, &label);
}

static safer_traffic traffic_of(sf_transport *t)
{
    safer_traffic traffic = {0};
    t->tell(t->self, &traffic);
    return traffic;
}

static int count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* After every test: no file descriptor and no child, alive or dead, is left. */
static int fds_before;

static int note_fds(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}

static int check_nothing_left(void **state)
{
    (void)state;
    if (count_fds() != fds_before) {
        print_error("%d file descriptors, %d before\n", count_fds(), fds_before);
        return -1;
    }
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        print_error("there are children left\n");
        return -1;
    }
    return 0;
}

/* A group of threads that ask; every answer is checked. */
typedef struct crowd {
    sf_transport *transport;
    size_t each;        /* requests of a thread */
    size_t batch;
    atomic_size_t wrong, failed, done;
    int next;
    safer_error error;  /* of one that failed */
    pthread_mutex_t lock;
} crowd;

static void *crowd_member(void *argument)
{
    crowd *c = argument;
    char texts[16][64];
    sf_span spans[16];
    int out[16];
    pthread_mutex_lock(&c->lock);
    int self = c->next++;
    pthread_mutex_unlock(&c->lock);
    for (size_t n = 0; n < c->each; n++) {
        safer_error mine = {0};
        for (size_t i = 0; i < c->batch; i++) {
            int length = snprintf(texts[i], sizeof texts[i], "thread %d request %zu %.*s", self, n, (int)(n + i) % 7, "abcdefg");
            spans[i] = (sf_span){texts[i], (size_t)length};
            out[i] = 77;
        }
        if (c->transport->ask(c->transport->self, spans, c->batch, out, NULL, &mine) != SAFER_OK) {
            pthread_mutex_lock(&c->lock);
            c->error = mine;
            pthread_mutex_unlock(&c->lock);
            atomic_fetch_add(&c->failed, 1);
            break;
        }
        for (size_t i = 0; i < c->batch; i++)
            if (out[i] != (int)(spans[i].length % 3)) atomic_fetch_add(&c->wrong, 1);
        atomic_fetch_add(&c->done, 1);
    }
    return NULL;
}

enum { CROWD = 12 };

static void crowd_start(crowd *c, pthread_t threads[CROWD])
{
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_create(&threads[i], NULL, crowd_member, c), 0);
}

static void crowd_end(crowd *c, pthread_t threads[CROWD])
{
    for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&c->lock);
}

static void check_crowd(crowd *c)
{
    if (atomic_load(&c->failed)) fail_msg("%s", c->error.message);
    assert_int_equal(atomic_load(&c->wrong), 0);
    assert_int_equal(atomic_load(&c->done), CROWD * c->each);
}

/* ------------------------------------------------------------- what must work */

static void test_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "a", "ab", "\xc3\xa4", "quote \" backslash \\ slash /", "tab \t newline \n return \r bell \a del \x7f"};
    sf_transport t = open_one(honest());
    int out[6];
    assert_string_equal(t.arch, "exec");
    assert_int_equal(t.batch, 64);
    assert_true(t.concurrency >= 1);
    assert_ok(ask_strings(&t, texts, 6, out));
    for (int i = 0; i < 6; i++) assert_int_equal(out[i], strlen(texts[i]) % 3);
    safer_traffic traffic = traffic_of(&t);
    assert_int_equal(traffic.requests, 1);
    assert_int_equal(traffic.retries, 0);
    assert_int_equal(traffic.restarts, 0);
    t.free(t.self);
}

/* Every byte and every length around the block of the escaping loop comes through as it is:
 * the child sends back a checksum that depends on order. */
static void test_escapes(void **state)
{
    (void)state;
    sf_transport t = open_one(python("def check(text):\n"
                                     "    sum = 0\n"
                                     "    for byte in text.encode(): sum = (sum * 31 + byte + 1) % 1000003\n"
                                     "    return sum % 3\n"
                                     "for line in sys.stdin:\n"
                                     "    request = json.loads(line)\n"
                                     "    say({'id': request['id'], 'labels': [check(t) for t in request['texts']]})\n"));
    enum { COUNT = 64 };
    char bytes[COUNT][200];
    sf_span spans[COUNT];
    int out[COUNT];
    unsigned random = 1;
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            size_t length = (size_t)(round * 2) + i;
            for (size_t k = 0; k < length; k++) {
                random = random * 1103515245u + 12345u;
                unsigned draw = random >> 16;
                bytes[i][k] = draw % 32 == 0 ? '"' : draw % 32 == 1 ? '\\' : (char)(draw % 32 < 4 ? (draw >> 5) % 32 : 32 + (draw >> 5) % 96);
            }
            spans[i] = (sf_span){bytes[i], length};
        }
        assert_ok(t.ask(t.self, spans, COUNT, out, NULL, &error));
        for (size_t i = 0; i < COUNT; i++) {
            long sum = 0;
            for (size_t k = 0; k < spans[i].length; k++) sum = (sum * 31 + (unsigned char)bytes[i][k] + 1) % 1000003;
            assert_int_equal(out[i], sum % 3);
        }
    }
    t.free(t.self);
}

static void test_kinds_of_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {"one", "two"};
    int out[2];
    float scores[6];
    sf_span spans[] = {{"one", 3}, {"two", 3}};

    sf_transport t = open_one("read x; echo '{\"id\":0, \"labels\":[\"pos\",null]}'; cat >/dev/null");
    assert_ok(ask_strings(&t, texts, 2, out));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], SF_NO_LABEL);
    t.free(t.self);

    t = open_one("read x; echo '{\"scores\":[[0.5,0.25,0.5],[-1,2e0,1]], \"id\":0, \"more\":{}}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 1);
    assert_true(scores[1] == 0.25f && scores[4] == 2.0f);
    t.free(t.self);

    t = open_one("read x; echo '{\"id\":0,\"error\":null,\"labels\":[2,0]}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 2);
    assert_true(scores[0] == 0 && scores[2] == 1 && scores[3] == 1);
    t.free(t.self);

    t = open_one("read x; echo '{\"id\":0,\"labels\":[2,0],\"scores\":[[1,0,0],[1,0,0]]}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 2); /* both: each speaks for itself */
    assert_true(scores[0] == 1);
    t.free(t.self);
}

/* Requests of many threads in flight at once, answered in any order. */
static void test_mixed_order(void **state)
{
    (void)state;
    sf_transport t = open_with(python("import select\n"
                                      "random.seed(1)\n"
                                      "held, rest = [], b''\n"
                                      "while True:\n"
                                      "    if select.select([0], [], [], 0.002)[0]:\n"
                                      "        new = os.read(0, 1 << 20)\n"
                                      "        if not new: break\n"
                                      "        *lines, rest = (rest + new).split(b'\\n')\n"
                                      "        held += [answer(json.loads(line)) for line in lines]\n"
                                      "        if len(held) < 5: continue\n"
                                      "    random.shuffle(held)\n"
                                      "    while held: say(held.pop())\n"), defaults());
    crowd c = {.transport = &t, .each = 60, .batch = 5};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    assert_int_equal(traffic_of(&t).requests, CROWD * c.each);
    assert_int_equal(traffic_of(&t).retries, 0);
    t.free(t.self);
}

/* A line far longer than any pipe, both ways, while others ask. */
static void test_huge_texts(void **state)
{
    (void)state;
    enum { LENGTH = 10 << 20 };
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    reply = answer(json.loads(line))\n"
                                      "    reply['padding'] = 'x' * 500000\n"
                                      "    say(reply)\n"), defaults());
    crowd c = {.transport = &t, .each = 20, .batch = 2};
    pthread_t threads[CROWD];
    char *text = sf_alloc(LENGTH, 1);
    int out[2];
    memset(text, 'x', LENGTH);
    for (size_t i = 0; i < LENGTH; i += 1000) text[i] = (char)(i / 1000 % 32);
    sf_span spans[] = {{text, LENGTH}, {text, LENGTH - 1}};
    crowd_start(&c, threads);
    for (int i = 0; i < 2; i++) {
        assert_ok(t.ask(t.self, spans, 2, out, NULL, &error));
        assert_int_equal(out[0], LENGTH % 3);
        assert_int_equal(out[1], (LENGTH - 1) % 3);
    }
    crowd_end(&c, threads);
    check_crowd(&c);
    free(text);
    t.free(t.self);
}

/* The child writes all it likes before it reads on; neither side waits for the other. */
static void test_talks_before_reading(void **state)
{
    (void)state;
    sf_transport t = open_one(python("for line in sys.stdin:\n"
                                     "    sys.stderr.write('e' * 300000); sys.stderr.flush()\n"
                                     "    reply = answer(json.loads(line))\n"
                                     "    reply['padding'] = 'x' * 300000\n"
                                     "    say(reply)\n"));
    crowd c = {.transport = &t, .each = 4, .batch = 3};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    t.free(t.self);
}

/* Workers are started only when there is work for them, and share it. */
static void test_workers(void **state)
{
    (void)state;
    const char *log = temporary("started");
    char command[800];
    FILE *file = fopen(log, "w");
    fclose(file);
    snprintf(command, sizeof command, "echo x >>%s; %s", log, honest());
    safer_remote_options options = defaults();
    options.workers = 4;
    sf_transport t = open_with(command, options);
    for (int i = 0; i < 3; i++) assert_ok(ask_one(&t, "text"));
    file = fopen(log, "r");
    int count = 0;
    for (int ch; (ch = fgetc(file)) != EOF;) count += ch == 'x';
    fclose(file);
    assert_int_equal(count, 1);
    crowd c = {.transport = &t, .each = 10, .batch = 1};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    file = fopen(log, "r");
    for (count = 0; fgetc(file) != EOF;) count++;
    fclose(file);
    assert_int_equal(count, 4 * 2);
    t.free(t.self);
}

/* ---------------------------------------------------------------------- death */

/* Every child answers a few requests and then dies, in the middle of a line or between. */
static void test_death(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.retries = 50;
    sf_transport t = open_with(python("random.seed(os.getpid())\n"
                                      "left = random.randint(3, 12)\n"
                                      "for line in sys.stdin:\n"
                                      "    say(answer(json.loads(line)))\n"
                                      "    left -= 1\n"
                                      "    if left == 0:\n"
                                      "        sys.stdout.write('{\"id\":'); sys.stdout.flush()\n"
                                      "        os.kill(os.getpid(), random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))\n"),
                               options);
    crowd c = {.transport = &t, .each = 8, .batch = 3};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    safer_traffic traffic = traffic_of(&t);
    assert_int_equal(traffic.requests, CROWD * c.each);
    assert_true(traffic.restarts >= CROWD * c.each / 12 - 2);
    assert_true(traffic.retries > 0);
    t.free(t.self);
}

/* Someone kills the workers every few milliseconds: the same answers. The child is a shell,
 * which starts fast enough to get a word in. */
static void test_kills_from_outside(void **state)
{
    (void)state;
    char command[1000];
    const char *pids = temporary("pids");
    snprintf(command, sizeof command,
             "echo $$ >>%s; while IFS= read -r line; do id=${line#*:}; id=${id%%%%,*}; text=${line#*[}; text=${text%%]*}; "
             "n=$((${#text} - 2)); echo \"{\\\"id\\\":$id,\\\"labels\\\":[$((n %% 3))]}\"; done",
             pids);
    safer_remote_options options = defaults();
    options.retries = 1000;
    sf_transport t = open_with(command, options);
    crowd c = {.transport = &t, .each = 300, .batch = 1};
    pthread_t threads[CROWD];
    long offset = 0;
    int kills = 0, previous = 0;
    crowd_start(&c, threads);
    while (atomic_load(&c.done) < CROWD * c.each && !atomic_load(&c.failed)) {
        usleep(8000);
        FILE *file = fopen(pids, "r");
        if (!file) continue;
        int pid, last = 0;
        fseek(file, offset, SEEK_SET);
        while (fscanf(file, "%d\n", &pid) == 1) last = pid;
        fclose(file);
        if (last && last != previous && kill(last, SIGKILL) == 0) kills++;
        previous = last;
    }
    crowd_end(&c, threads);
    check_crowd(&c);
    assert_true(kills > 3);
    assert_true(traffic_of(&t).restarts >= 3);
    t.free(t.self);
}

/* A child that dies while it has nothing to do costs no request a try. */
static void test_death_at_rest(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.retries = 0;
    options.workers = 1;
    sf_transport t = open_with(python("line = sys.stdin.readline()\nsay(answer(json.loads(line)))\n"), options);
    for (int i = 0; i < 4; i++) {
        assert_ok(ask_one(&t, "text"));
        usleep(300000);
    }
    assert_int_equal(traffic_of(&t).retries, 0);
    assert_int_equal(traffic_of(&t).restarts, 3);
    t.free(t.self);
}

static void test_retries_are_bounded(void **state)
{
    (void)state;
    const char *log = temporary("tries");
    char program[700];
    snprintf(program, sizeof program,
             "for line in sys.stdin:\n"
             "    request = json.loads(line)\n"
             "    if request['texts'] == ['poison']:\n"
             "        open('%s', 'a').write('x')\n"
             "        sys.exit('no memory for this\\nreally')\n"
             "    say(answer(request))\n", log);
    safer_remote_options options = defaults();
    options.workers = 1;
    options.retries = 2;
    sf_transport t = open_with(python(program), options);
    assert_ok(ask_one(&t, "harmless"));
    assert_fails(ask_one(&t, "poison"), SAFER_SYSTEM, "exec: the command ended with status 1, 3 times with the same request: no memory for this | really");
    assert_fails(ask_one(&t, "harmless"), SAFER_SYSTEM, "no memory"); /* a failure is for good */
    t.free(t.self);
    FILE *file = fopen(log, "r");
    char tries[8] = "";
    assert_non_null(fgets(tries, sizeof tries, file));
    fclose(file);
    assert_string_equal(tries, "xxx");
}

static void test_command_is_no_good(void **state)
{
    (void)state;
    static const struct {
        const char *command, *words;
    } cases[] = {
        {"no-such-command-here", "ended with status 127, 5 times in a row before it answered anything: sh: 1: no-such-command-here: not found"},
        {"exit 0", "ended with status 0, 5 times in a row"},
        {"exec <&-; exit 3", "ended with status 3"},
        {"echo first >&2; echo >&2; echo second >&2; kill -9 $$", "was killed by signal 9 (Killed), 5 times in a row before it answered anything: first | second"},
        {"printf '{\"id\"'; exit 4", "ended with status 4"},
        {"exec >&-; exec sleep 60", "ended with status"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        safer_remote_options options = defaults();
        options.retries = 9;
        sf_transport t = open_with(cases[i].command, options);
        if (i < 5)
            assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, cases[i].words);
        else
            assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, "was killed by signal 15");
        t.free(t.self);
    }
    safer_remote_options options = defaults();
    options.retries = 0;
    sf_transport t = open_with("exit 7", options);
    assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, "ended with status 7 while it had a request");
    t.free(t.self);
}

/* Only the end of a long standard error is shown, whole lines of it. */
static void test_long_standard_error(void **state)
{
    (void)state;
    sf_transport t = open_one(python("for i in range(5000): print('line', i, '\\u00e4' * 50, file=sys.stderr)\n"
                                     "raise ValueError('the last of it')\n"));
    assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, "ValueError: the last of it");
    assert_null(strstr(error.message, "line 4000 "));
    assert_null(strchr(error.message, '\n'));
    t.free(t.self);
}

/* ----------------------------------------------------------------- time-outs */

static void test_hang(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.timeout = 0.3;
    options.retries = 1;
    sf_transport t = open_with("echo thinking >&2; cat >/dev/null", options);
    double start = sf_seconds();
    assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, "gave no answer within 0.3 seconds (time-out), 2 times with the same request: thinking");
    assert_true(sf_seconds() - start < 5);
    t.free(t.self);
}

/* A child that never reads: more than any pipe holds is in the way. */
static void test_never_reads(void **state)
{
    (void)state;
    enum { LENGTH = 5 << 20 };
    safer_remote_options options = defaults();
    options.timeout = 0.3;
    options.retries = 0;
    sf_transport t = open_with("exec sleep 1000", options);
    char *text = sf_alloc(LENGTH, 1);
    int label;
    memset(text, 'a', LENGTH);
    assert_fails(t.ask(t.self, &(sf_span){text, LENGTH}, 1, &label, NULL, &error), SAFER_SYSTEM, "time-out");
    free(text);
    t.free(t.self);
}

/* One hang, then all is well; what the hung child had started is gone with it. */
static void test_hang_once(void **state)
{
    (void)state;
    const char *flag = temporary("hung");
    char program[600];
    snprintf(program, sizeof program,
             "if not os.path.exists('%s'):\n"
             "    open('%s', 'w').close()\n"
             "    os.system('sleep 1000')\n"
             "for line in sys.stdin: say(answer(json.loads(line)))\n", flag, flag);
    safer_remote_options options = defaults();
    options.timeout = 5;
    options.workers = 1;
    sf_transport t = open_with(python(program), options);
    crowd c = {.transport = &t, .each = 3, .batch = 2};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    assert_int_equal(traffic_of(&t).restarts, 1);
    t.free(t.self);
}

/* It answers others all the time, but one request never. */
static void test_forgets_one(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.timeout = 3;
    options.retries = 0;
    options.workers = 1;
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    request = json.loads(line)\n"
                                      "    if request['id'] != 5: say(answer(request))\n"), options);
    crowd c = {.transport = &t, .each = 100000000, .batch = 1};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_int_equal(atomic_load(&c.failed), CROWD);
    assert_non_null(strstr(c.error.message, "time-out"));
    t.free(t.self);
}

/* Slow, but each request in its time: many in flight are no time-out. */
static void test_slow_is_no_hang(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.timeout = 5; /* eight requests at a time take longer */
    options.retries = 0;
    options.workers = 1;
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    time.sleep(0.7)\n"
                                      "    say(answer(json.loads(line)))\n"), options);
    crowd c = {.transport = &t, .each = 1, .batch = 1};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    t.free(t.self);
}

/* ------------------------------------------------------------- wrong answers */

/* Each is final: the child is not asked again. */
static void test_wrong_answers(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *words;
    } cases[] = {
        {"hello", "exec: the command wrote what is not JSON"},
        {"Loading the model...", "standard output is for answers alone: Loading the model..."},
        {"", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2]", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2]} x", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2],\"id\":0}", "not JSON"},
        {"{\"id\":0,\"labels\":[1,\"\xff\"]}", "not JSON"},
        {"[1,2]", "must be an object"},
        {"{\"id\":1,\"labels\":[1,2]}", "request 1, which is not open"},
        {"{\"id\":-1,\"labels\":[1,2]}", "request -1, which is not open"},
        {"{\"id\":\"0\",\"labels\":[1,2]}", "request \"0\", which is not open"},
        {"{\"labels\":[1,2]}", "request (no \"id\"), which is not open"},
        {"{\"id\":0,\"labels\":[1]}", "exec: 1 labels for 2 texts"},
        {"{\"id\":0,\"labels\":[1,2,0]}", "exec: 3 labels for 2 texts"},
        {"{\"id\":0,\"labels\":\"pos\"}", "no list"},
        {"{\"id\":0,\"labels\":[1,3]}", "3 is none of the labels"},
        {"{\"id\":0,\"labels\":[1,\"posh\"]}", "\"posh\" is none of the labels (neg, pos, other)"},
        {"{\"id\":0,\"labels\":[1,1.5]}", "1.5 is none of the labels"},
        {"{\"id\":0,\"labels\":[1,true]}", "true is none of the labels"},
        {"{\"id\":0,\"scores\":[[1,2,3]]}", "for 2 texts"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2]]}", "must be a list of 3 numbers"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,\"3\"]]}", "no finite number"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,NaN]]}", "NaN and Infinity are no scores"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,-Infinity]]}", "NaN and Infinity are no scores"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,1e999]]}", "not JSON"},
        {"{\"id\":0}", "neither \"labels\" nor \"scores\""},
        {"{\"id\":0,\"error\":\"no such model\"}", "exec: the command says: no such model"},
        {"{\"error\":{\"code\":5}}", "exec: the command says: {\"code\": 5}"},
    };
    static const char *const texts[] = {"one", "two"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[1000];
        const char *log = temporary("asked"), *reply = write_temporary("reply", cases[i].reply, strlen(cases[i].reply));
        int out[2];
        snprintf(command, sizeof command, "read -r x; echo x >>%s; cat %s; echo; cat >/dev/null", log, reply);
        unlink(log);
        sf_transport t = open_one(command);
        assert_fails(ask_strings(&t, texts, 2, out), SAFER_INPUT, cases[i].words);
        assert_fails(ask_strings(&t, texts, 2, out), SAFER_INPUT, cases[i].words);
        t.free(t.self);
        FILE *file = fopen(log, "r");
        char tries[8] = "";
        assert_true(fread(tries, 1, sizeof tries - 1, file) > 0);
        fclose(file);
        assert_string_equal(tries, "x\n");
    }
}

static void test_answers_twice(void **state)
{
    (void)state;
    sf_transport t = open_one(python("for line in sys.stdin:\n    for i in range(2): say(answer(json.loads(line)))\n"));
    ask_one(&t, "text"); /* the second answer may come at once, or while it rests */
    usleep(100000);
    assert_fails(ask_one(&t, "text"), SAFER_INPUT, "request 0, which is not open");
    t.free(t.self);
}

static void test_endless_line(void **state)
{
    (void)state;
    sf_transport t = open_one("exec tr '\\0' a </dev/zero");
    assert_fails(ask_one(&t, "text"), SAFER_INPUT, "longer than 64 MB");
    t.free(t.self);
}

/* When one request fails for good, all threads hear of it at once. */
static void test_failure_reaches_all(void **state)
{
    (void)state;
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    if json.loads(line)['id'] == 3: say({'id': 3, 'labels': ['unheard-of']})\n"), defaults());
    crowd c = {.transport = &t, .each = 1, .batch = 1};
    pthread_t threads[CROWD];
    double start = sf_seconds();
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    assert_true(sf_seconds() - start < 10);
    assert_int_equal(atomic_load(&c.failed), CROWD);
    assert_non_null(strstr(c.error.message, "\"unheard-of\" is none of the labels"));
    start = sf_seconds();
    t.free(t.self);
    assert_true(sf_seconds() - start < 5);
}

/* --------------------------------------------------------------------- the end */

/* A child that heeds neither the end of its input nor SIGTERM, and one that has children. */
static void test_stubborn_child(void **state)
{
    (void)state;
    const char *pids = temporary("stubborn");
    char command[900];
    snprintf(command, sizeof command,
             "trap '' TERM HUP; sleep 1000 & echo $! >%s; read -r x; echo '{\"id\":0,\"labels\":[0]}'; while :; do sleep 0.1; done", pids);
    sf_transport t = open_one(command);
    assert_ok(ask_one(&t, "text"));
    double start = sf_seconds();
    t.free(t.self);
    double took = sf_seconds() - start;
    assert_true(took > 1.9 && took < 6);
    FILE *file = fopen(pids, "r");
    int pid = 0;
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid); /* gone, or a zombie that init has not collected yet */
    int gone = 0;
    for (int i = 0; i < 500 && !gone; i++) { /* it was killed; on a busy machine that takes its time */
        file = fopen(path, "r");
        gone = !file || !fgets(line, sizeof line, file) || strstr(line, ") Z");
        if (file) fclose(file);
        if (!gone) usleep(10000);
    }
    assert_true(gone);
}

/* One that ends by itself may finish what it does then. */
static void test_gentle_end(void **state)
{
    (void)state;
    const char *path = temporary("farewell");
    char command[600];
    snprintf(command, sizeof command, "read -r x; echo '{\"id\":0,\"labels\":[0]}'; cat >/dev/null; sleep 0.3; echo done >%s", path);
    sf_transport t = open_one(command);
    assert_ok(ask_one(&t, "text"));
    t.free(t.self);
    assert_int_equal(access(path, F_OK), 0);
    t = open_one("unused"); /* never asked: never started */
    t.free(t.self);
}

/* The files that are open now, as a list for Python: what the tests themselves were given. */
static void list_fds(char out[300])
{
    size_t used = 0;
    DIR *folder = opendir("/proc/self/fd");
    out[0] = '\0';
    for (struct dirent *entry; (entry = readdir(folder)) && used < 280;)
        if (entry->d_name[0] != '.') used += (size_t)snprintf(out + used, 300 - used, "%s,", entry->d_name);
    closedir(folder);
}

/* It is no member of our process group, holds no pipe but its own, and has no signal blocked. */
static void test_child_is_alone(void **state)
{
    (void)state;
    char program[1000], known[300];
    safer_remote_options options = defaults();
    options.workers = 3;
    list_fds(known);
    snprintf(program, sizeof program,
             "pipes = [int(f) for f in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}') and\n"
             "         os.readlink(f'/proc/self/fd/{f}').startswith('pipe')]\n"
             "status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())\n"
             "blocked = int(status['SigBlk'], 16)\n"
             "if os.getpgid(0) != os.getpid() or set(pipes) - {0, 1, 2, %s} or blocked:\n"
             "    sys.exit(f'{os.getpgid(0)} {os.getpid()} {pipes} {blocked}')\n"
             "for line in sys.stdin: say(answer(json.loads(line)))\n", known);
    sf_transport t = open_with(python(program), options);
    crowd c = {.transport = &t, .each = 5, .batch = 2};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    t.free(t.self);
}

/* A program that ignores SIGPIPE, as Python does, does not hand that down; and ours stays as it was. */
static void test_broken_pipe_signal(void **state)
{
    (void)state;
    unsigned long long ignored = 0;
    signal(SIGPIPE, SIG_IGN);
    sf_transport t = open_one("grep SigIgn /proc/$$/status >&2; exit 1");
    assert_fails(ask_one(&t, "text"), SAFER_SYSTEM, "SigIgn:");
    assert_int_equal(sscanf(strstr(error.message, "SigIgn:") + 8, "%llx", &ignored), 1);
    assert_false(ignored >> (SIGPIPE - 1) & 1);
    t.free(t.self);
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}

/* With the standard streams closed, pipes get their numbers. */
static void test_closed_streams(void **state)
{
    (void)state;
    const char *command = honest();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        safer_remote_options options = defaults();
        sf_transport t;
        close(0);
        close(1);
        close(2);
        if (sf_exec_open(&t, command, &labels, &options, NULL) != SAFER_OK) _exit(1);
        sf_span text = {"four", 4};
        int label = 0;
        safer_status status = t.ask(t.self, &text, 1, &label, NULL, NULL);
        t.free(t.self);
        _exit(status != SAFER_OK ? 2 : label != 1);
    }
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
}

/* Any allocation may fail, here or in a keeper. */
static safer_status open_and_ask(void *context, safer_error *e)
{
    safer_remote_options options = {.workers = 2, .timeout = 30};
    sf_transport t;
    sf_span texts[] = {{"one\n", 4}, {"text", 4}};
    int out[2];
    safer_status status = sf_exec_open(&t, context, &labels, &options, e);
    if (status != SAFER_OK) return status;
    status = t.ask(t.self, texts, 2, out, NULL, e);
    t.free(t.self);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_every_allocation(open_and_ask, (char[]){"read -r x; echo '{\"id\":0,\"labels\":[0,1]}'; cat >/dev/null"});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, note_fds, check_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_answers), TEST(test_escapes), TEST(test_kinds_of_answers), TEST(test_mixed_order), TEST(test_huge_texts),
        TEST(test_talks_before_reading), TEST(test_workers),
        TEST(test_death), TEST(test_kills_from_outside), TEST(test_death_at_rest), TEST(test_retries_are_bounded),
        TEST(test_command_is_no_good), TEST(test_long_standard_error),
        TEST(test_hang), TEST(test_never_reads), TEST(test_hang_once), TEST(test_forgets_one), TEST(test_slow_is_no_hang),
        TEST(test_wrong_answers), TEST(test_answers_twice), TEST(test_endless_line), TEST(test_failure_reaches_all),
        TEST(test_stubborn_child), TEST(test_gentle_end), TEST(test_child_is_alone), TEST(test_broken_pipe_signal), TEST(test_closed_streams),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
