// HTTP/1.1 over kept-alive connections: prepared requests in turn, each with the text that its answer must contain.
// A text "@00000000000000000000" in a request becomes the time for which the request is planned, so that an agent can tell how long its command took.
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STAMP "@00000000000000000000"
#define STAMP_DIGITS 20

static struct request { char *expected, *text, *stamp; int length; } *requests;
static int request_count;
static uint64_t next_request;

/** The file has for each request a line `<bytes> <expected text>` and then that many bytes. */
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
    r->stamp = memmem(r->text, length, STAMP, sizeof STAMP - 1);
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
  if (r->stamp) {
    char digits[STAMP_DIGITS + 1];
    snprintf(digits, sizeof digits, "%0*llu", STAMP_DIGITS, (unsigned long long)c->due);
    memcpy(r->stamp + 1, digits, STAMP_DIGITS);
  }
  put(c, r->text, r->length);
}

static const char *header(const char *head, const char *end, const char *name) {
  for (const char *line = head; line && line < end; line = memmem(line, end - line, "\r\n", 2), line = line ? line + 2 : NULL)
    if (!strncasecmp(line, name, strlen(name))) return line + strlen(name);
  return NULL;
}

/** The length of the body; 0 while it is incomplete, -1 if it is unknown. */
static int body_length(const char *head, const char *body, int length) {
  const char *size = header(head, body - 4, "content-length:"), *last;
  if (size) return atoi(size) <= length ? atoi(size) : 0;
  if (!header(head, body - 4, "transfer-encoding:")) return -1;
  last = memmem(body, length, "\r\n0\r\n\r\n", 7);
  return last ? (int)(last - body) + 7 : 0;
}

static int take_http(struct conn *c, uint8_t *bytes, int length) {
  uint8_t *body = memmem(bytes, length, "\r\n\r\n", 4);
  if (!body) return 0;
  body += 4;
  int head = (int)(body - bytes), size = body_length((char *)bytes, (char *)body, length - head);
  if (size <= 0) return size;
  int good = bytes[9] == '2' && memmem(body, size, c->expected, strlen(c->expected)) != NULL;
  if (!good && count.wrong < 3) fprintf(stderr, "expected %s, got: %.*s\n", c->expected, length < 900 ? length : 900, bytes);
  answered(c, good ? c->answered + 1 : 0);
  return head + size;
}

const struct protocol http_protocol = {"http", open_http, take_http, ask_http};
