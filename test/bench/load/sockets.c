// Sockets and the clock: one epoll loop over all connections; writes may have to wait, reads may end inside a frame.
#include "load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define BATCH 512
#define READ_BYTES 262144
#define ADDRESSES 4

static int poller;
static struct sockaddr_in server;
static const struct protocol *protocol;

uint64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t noise(void) {
  static uint64_t state;
  while (!state)
    if (getrandom(&state, sizeof state, 0) < 0) state = nanoseconds();
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

const char *timestamp(void) {
  static char text[40];
  static time_t second;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (t.tv_sec != second) {
    struct tm parts;
    second = t.tv_sec;
    gmtime_r(&second, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &parts);
  }
  int ms = (int)(t.tv_nsec / 1000000);
  text[20] = (char)('0' + ms / 100);
  text[21] = (char)('0' + ms / 10 % 10);
  text[22] = (char)('0' + ms % 10);
  return text;
}

static void interest(struct conn *c, int operation) {
  struct epoll_event event = {.events = EPOLLIN | (c->stage == CONNECTING || c->out_length ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(poller, operation, c->fd, &event);
}

/** The kernel finds half of the local ports quickly and searches the rest for milliseconds each, so use several source addresses. */
static void spread(struct conn *c) {
  int on = 1;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)c->number % ADDRESSES)};
  if (ntohl(server.sin_addr.s_addr) != INADDR_LOOPBACK) return;
  setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  if (bind(c->fd, (struct sockaddr *)&from, sizeof from) < 0) perror("bind");
}

int dial(struct conn *c) {
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) return -1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  spread(c);
  c->stage = CONNECTING;
  c->asked = c->answered = 0;
  c->mask = (uint32_t)noise();
  if (connect(c->fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS) {
    close(c->fd);
    c->fd = -1;
    c->stage = IDLE;
    return -1;
  }
  interest(c, EPOLL_CTL_ADD);
  return 0;
}

/** Closes with a reset, so that no port stays in TIME_WAIT. */
void drop(struct conn *c) {
  if (c->fd < 0) return;
  struct linger now = {1, 0};
  enum stage stage = c->stage;
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(c->fd);
  free(c->in);
  free(c->out);
  c->fd = -1;
  c->in = c->out = NULL;
  c->in_length = c->out_length = 0;
  c->stage = IDLE;
  dropped(c, stage);
}

void put(struct conn *c, const void *bytes, int length) {
  if (c->fd < 0) return;
  int done = c->out_length ? 0 : (int)send(c->fd, bytes, length, MSG_NOSIGNAL);
  if (done < 0) {
    if (errno != EAGAIN) return drop(c);
    done = 0;
  }
  if (done == length) return;
  c->out = realloc(c->out, c->out_length + length - done);
  memcpy(c->out + c->out_length, (const uint8_t *)bytes + done, length - done);
  c->out_length += length - done;
  interest(c, EPOLL_CTL_MOD);
}

static void flush(struct conn *c) {
  int done = (int)send(c->fd, c->out, c->out_length, MSG_NOSIGNAL);
  if (done < 0) {
    if (errno != EAGAIN) drop(c);
    return;
  }
  c->out_length -= done;
  memmove(c->out, c->out + done, c->out_length);
  if (!c->out_length) interest(c, EPOLL_CTL_MOD);
}

static void hear(struct conn *c) {
  static uint8_t bytes[READ_BYTES];
  int length = c->in_length, at = 0;
  if (length) memcpy(bytes, c->in, length);
  int got = (int)recv(c->fd, bytes + length, READ_BYTES - length, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return drop(c);
  length += got;
  while (c->fd >= 0 && at < length) {
    int used = protocol->take(c, bytes + at, length - at);
    if (used < 0) return drop(c);
    if (used == 0) break;
    at += used;
  }
  if (c->fd < 0) return;
  c->in_length = length - at;
  if (!c->in_length && !c->in) return;
  c->in = realloc(c->in, c->in_length ? c->in_length : 1);
  memcpy(c->in, bytes + at, c->in_length);
  if (!c->in_length) {
    free(c->in);
    c->in = NULL;
  }
}

static void serve(struct conn *c, uint32_t events) {
  if (c->fd < 0) return;
  if (c->stage == CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return drop(c);
    c->stage = OPENING;
    interest(c, EPOLL_CTL_MOD);
    protocol->open(c);
    return;
  }
  if (events & EPOLLOUT && c->out_length) flush(c);
  if (c->fd >= 0 && events & (EPOLLIN | EPOLLERR | EPOLLHUP)) hear(c);
}

void ask(struct conn *c, uint64_t due) {
  c->asked++;
  c->due = due;
  protocol->ask(c);
}

int attend(int64_t wait_ns) {
  struct epoll_event events[BATCH];
  struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
  int found = epoll_pwait2(poller, events, BATCH, wait_ns < 0 ? NULL : &wait, NULL), line = 0;
  for (int i = 0; i < found; i++) {
    if (events[i].data.ptr) serve(events[i].data.ptr, events[i].events);
    else line = 1;
  }
  return line;
}

int open_sockets(const char *address, const struct protocol *spoken) {
  char name[64];
  const char *colon = strchr(address, ':');
  snprintf(name, sizeof name, "%.*s", (int)(colon - address), address);
  server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
  protocol = spoken;
  poller = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poller, EPOLL_CTL_ADD, 0, &input);
  return inet_pton(AF_INET, name, &server.sin_addr) == 1 ? 0 : -1;
}
