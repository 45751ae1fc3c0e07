/* What systemd is told about a service. */
#define _GNU_SOURCE
#include "notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void cli_notify(const char *lines)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t length = name ? strlen(name) : 0;
    struct timespec now;
    char message[256];
    if (length < 2 || length >= sizeof to.sun_path || (*name != '/' && *name != '@')) return;
    memcpy(to.sun_path, name, length);
    if (*name == '@') to.sun_path[0] = '\0'; /* a name that is in no folder */
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int used = strcmp(lines, "RELOADING=1") == 0
                         ? snprintf(message, sizeof message, "%s\nMONOTONIC_USEC=%lld", lines,
                                    (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000)
                         : snprintf(message, sizeof message, "%s", lines);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    (void)!sendto(fd, message, (size_t)used, MSG_NOSIGNAL, (const struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}
