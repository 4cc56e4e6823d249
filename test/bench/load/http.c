// HTTP/1.1 over kept connections: prepared requests in turn, each with the words that its answer must contain.
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct request { char *expected, *text; int length; } *requests;
static int request_count;
static uint64_t next_request;

/** The file: for each request a line `<bytes> <expected words>` and then so many bytes. */
int load_requests(const char *path) {
  FILE *file = fopen(path, "r");
  char line[256];
  if (!file) return -1;
  request_count = 0;
  while (fgets(line, sizeof line, file)) {
    char *words;
    int length = (int)strtol(line, &words, 10);
    words[strcspn(words, "\n")] = 0;
    requests = realloc(requests, sizeof *requests * (request_count + 1));
    struct request *r = &requests[request_count++];
    *r = (struct request){.expected = strdup(words + 1), .text = malloc(length), .length = length};
    if (fread(r->text, 1, length, file) != (size_t)length) return -1;
  }
  fclose(file);
  return request_count;
}

static void open_http(struct conn *c) {
  reached(c, OPENING);
  reached(c, READY);
}

static void ask_http(struct conn *c) {
  struct request *r = &requests[next_request++ % request_count];
  snprintf(c->expected, sizeof c->expected, "%s", r->expected);
  put(c, r->text, r->length);
}

static int content_length(const char *head, const char *end) {
  for (const char *line = head; line && line < end; line = memmem(line, end - line, "\r\n", 2), line = line ? line + 2 : NULL)
    if (!strncasecmp(line, "content-length:", 15)) return atoi(line + 15);
  return -1;
}

static int take_http(struct conn *c, uint8_t *bytes, int length) {
  uint8_t *end = memmem(bytes, length, "\r\n\r\n", 4);
  if (!end) return 0;
  int size = content_length((char *)bytes, (char *)end), head = (int)(end - bytes) + 4;
  if (size < 0) return -1;
  if (length < head + size) return 0;
  int good = bytes[9] == '2' && memmem(end + 4, size, c->expected, strlen(c->expected)) != NULL;
  if (!good && count.wrong < 3) fprintf(stderr, "expected %s, got: %.*s\n", c->expected, length < 900 ? length : 900, bytes);
  answered(c, good ? c->answered + 1 : 0);
  return head + size;
}

const struct protocol http_protocol = {"http", open_http, take_http, ask_http};
