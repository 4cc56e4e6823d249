// The load generator: connections of one protocol, controlled over standard input. Usage: load PROTOCOL HOST:PORT CONNECTIONS [IDENTITIES]
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct identity *identities;
struct conn *conns;
const char *host_name;
int capacity;

static const struct protocol *const PROTOCOLS[] = {&ws_protocol, &agent_protocol, &socketio_protocol, &mqtt_protocol, &http_protocol};

static int read_identities(const char *path) {
  FILE *file = fopen(path, "r");
  int found = 0;
  identities = calloc(capacity, sizeof *identities);
  while (file && found < capacity && fscanf(file, "%63s %63s %127s", identities[found].agent, identities[found].tenant, identities[found].secret) == 3) found++;
  if (file) fclose(file);
  return found;
}

int main(int words, char **word) {
  const struct protocol *protocol = NULL;
  char line[1024];
  int length = 0;
  for (size_t i = 0; words > 3 && i < sizeof PROTOCOLS / sizeof *PROTOCOLS; i++)
    if (!strcmp(PROTOCOLS[i]->name, word[1])) protocol = PROTOCOLS[i];
  if (!protocol || open_sockets(host_name = word[2], protocol) < 0) {
    fprintf(stderr, "usage: load PROTOCOL HOST:PORT CONNECTIONS [IDENTITIES]\n");
    return 2;
  }
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  capacity = atoi(word[3]);
  if (words > 4 && read_identities(word[4]) < capacity) {
    fprintf(stderr, "%s names fewer than %d agents\n", word[4], capacity);
    return 2;
  }
  conns = calloc(capacity, sizeof *conns);
  for (int i = 0; i < capacity; i++) conns[i] = (struct conn){.fd = -1, .number = i};
  may_rest = protocol == &http_protocol;
  watch("load", getpid());
  for (;;) {
    if (!attend(-1)) continue;
    int got = (int)read(0, line + length, sizeof line - 1 - length);
    if (got <= 0) return 0;
    length += got;
    line[length] = 0;
    for (char *end; (end = strchr(line, '\n')); length = (int)strlen(line)) {
      *end = 0;
      command(line);
      memmove(line, end + 1, strlen(end + 1) + 1);
    }
  }
}
