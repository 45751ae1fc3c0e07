/* Programs as models: children that die, hang, or do not end when told to. The answers must stay the same, and no
 * process may be left behind. */
#define _GNU_SOURCE
#include "test_exec.h"

/* ---------------------------------------------------------------------- death */

/* Every child answers a few requests and then dies, in the middle of a line or between. */
static void test_death(void **state)
{
    (void)state;
    safer_remote_options options = defaults();
    options.retries = 50;
    sf_transport t = open_with(
        python("random.seed(os.getpid())\n"
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
    snprintf(
        command, sizeof command,
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
             "    say(answer(request))\n",
             log);
    safer_remote_options options = defaults();
    options.workers = 1;
    options.retries = 2;
    sf_transport t = open_with(python(program), options);
    assert_ok(ask_one(&t, "harmless"));
    assert_fails(ask_one(&t, "poison"), SAFER_SYSTEM,
                 "exec: the command ended with status 1, 3 times with the same request: no memory for this | really");
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
        {"no-such-command-here", "ended with status 127, 5 times in a row before it answered anything: "},
        {"exit 0", "ended with status 0, 5 times in a row"},
        {"exec <&-; exit 3", "ended with status 3"},
        {"echo first >&2; echo >&2; echo second >&2; kill -9 $$",
         "was killed by signal 9 (Killed), 5 times in a row before it answered anything: first | second"},
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
        if (i == 0)
            assert_non_null(strstr(error.message, "no-such-command-here")); /* as this machine's shell says it */
        t.free(t.self);
    }
    safer_remote_options options = defaults();
    options.retries = 0;
    sf_transport t = open_with("read line; exit 7", options); /* not before it was asked, whichever shell it is */
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
    assert_fails(ask_one(&t, "text"), SAFER_SYSTEM,
                 "gave no answer within 0.3 seconds (time-out), 2 times with the same request: thinking");
    assert_true(sf_seconds() - start < 5);
    t.free(t.self);
}

/* Nobody waits for a time-out who was asked to stop: not behind a child that is silent, one that does not read, or
 * one that is given nothing yet. Others who ask the same transport get their answers. */
static int stop_after_a_while(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    return sf_seconds() > *(double *)context;
}

static void test_cancelled(void **state)
{
    (void)state;
    enum { LENGTH = 5 << 20 };
    const char *commands[] = {"trap '' TERM; cat >/dev/null; sleep 1000", "exec sleep 1000"};
    char *text = sf_alloc(LENGTH, 1);
    memset(text, 'a', LENGTH);
    for (int i = 0; i < 4; i++) {
        double begin = sf_seconds(), end = begin + 0.2;
        int label;
        sf_transport t = open_one(commands[i / 2]);
        safer_progress progress = {stop_after_a_while, &end};
        sf_meter meter = {.progress = &progress, .stage = "asking"};
        const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
        assert_fails(t.ask(t.self, &(sf_span){text, i % 2 ? LENGTH : 3}, 1, &label, NULL, &error), SAFER_CANCELLED,
                     "cancelled");
        (void)sf_duty_change(before);
        t.free(t.self);
        assert_true(sf_seconds() - begin < 5); /* the time-out is a minute */
    }
    free(text);
}

typedef struct bystander {
    sf_transport *transport;
    safer_status status;
} bystander;

static void *ask_beside(void *context)
{
    bystander *b = context;
    int label;
    safer_error own = {0};
    b->status = b->transport->ask(b->transport->self, &(sf_span){"fine", 4}, 1, &label, NULL, &own);
    if (b->status == SAFER_OK && label != 4 % 3) b->status = SAFER_INPUT;
    return NULL;
}

static void test_cancelled_beside_others(void **state)
{
    (void)state;
    double end = sf_seconds() + 0.5;
    pthread_t thread;
    sf_transport t = open_one(python("for line in sys.stdin:\n"
                                     "    request = json.loads(line)\n"
                                     "    if 'hang' in request['texts']: time.sleep(1000)\n"
                                     "    say(answer(request))\n"));
    bystander other = {.transport = &t};
    safer_progress progress = {stop_after_a_while, &end};
    sf_meter meter = {.progress = &progress, .stage = "asking"};
    const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
    assert_int_equal(pthread_create(&thread, NULL, ask_beside, &other), 0);
    assert_fails(ask_one(&t, "hang"), SAFER_CANCELLED, "cancelled");
    (void)sf_duty_change(before);
    pthread_join(thread, NULL);
    assert_int_equal(other.status, SAFER_OK);
    assert_ok(ask_one(&t, "again"));
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
             "for line in sys.stdin: say(answer(json.loads(line)))\n",
             flag, flag);
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
                                      "    if request['id'] != 5: say(answer(request))\n"),
                               options);
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
                                      "    say(answer(json.loads(line)))\n"),
                               options);
    crowd c = {.transport = &t, .each = 1, .batch = 1};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    t.free(t.self);
}

/* --------------------------------------------------------------------- the end */

/* A child that heeds neither the end of its input nor SIGTERM, and one that has children. */
static void test_stubborn_child(void **state)
{
    (void)state;
    const char *pids = temporary("stubborn");
    char command[900];
    snprintf(command, sizeof command,
             "trap '' TERM HUP; sleep 1000 & echo $! >%s; read -r x; echo '{\"id\":0,\"labels\":[0]}'; "
             "while :; do sleep 0.1; done",
             pids);
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
    snprintf(command, sizeof command,
             "read -r x; echo '{\"id\":0,\"labels\":[0]}'; cat >/dev/null; sleep 0.3; echo done >%s", path);
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
             "for line in sys.stdin: say(answer(json.loads(line)))\n",
             known);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_death),
        TEST(test_kills_from_outside),
        TEST(test_death_at_rest),
        TEST(test_retries_are_bounded),
        TEST(test_command_is_no_good),
        TEST(test_long_standard_error),
        TEST(test_hang),
        TEST(test_cancelled),
        TEST(test_cancelled_beside_others),
        TEST(test_never_reads),
        TEST(test_hang_once),
        TEST(test_forgets_one),
        TEST(test_slow_is_no_hang),
        TEST(test_stubborn_child),
        TEST(test_gentle_end),
        TEST(test_child_is_alone),
        TEST(test_broken_pipe_signal),
        TEST(test_closed_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
