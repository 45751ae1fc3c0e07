/* What systemd is told about a service: that it is ready, reloads, stops. */
#ifndef CLI_NOTIFY_H
#define CLI_NOTIFY_H

/* Sends lines such as "READY=1" to the socket that $NOTIFY_SOCKET names (man sd_notify), if there is one. After
 * "RELOADING=1" the time is added, as systemd wants it. A failure is not told: the service goes on in any case. */
void cli_notify(const char *lines);

#endif
