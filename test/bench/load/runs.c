// The orders of the harness, one line each, answered with a line of JSON: connect, churn, run, cut, tally, pushes, report.
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES (1 << 22)
#define DRAIN_NS 20000000000ull
#define CONNECT_NS 240000000000ull
#define MS 1000000ull

struct counters count;
int mixed_percent, may_rest;

static int ready, opened, pending, arrived; // sockets: usable, past the upgrade, connecting, at the stage of a churn
static int ending;                          // this side closes the socket
static enum { CLOSED_LOOP, OPEN_LOOP, RESTING } mode = RESTING;
static enum stage churn_stage;              // the stage at which churned sockets are closed, IDLE if they stay
static int in_window, active;               // counting now; connections that take part
static uint64_t outstanding, window_answers;
static uint32_t *samples;
static int sample_count, free_count;
static struct conn **free_conns;            // open loop: connections without a request in progress

static void end(struct conn *c) {
  ending = 1;
  drop(c);
  ending = 0;
}

void reached(struct conn *c, enum stage stage) {
  if (c->fd < 0) return;
  if (stage == OPENING) opened++;
  else {
    ready++;
    c->stage = READY;
    c->first = c->asked;
  }
  if (churn_stage == stage) {
    arrived++;
    end(c);
  } else if (stage == READY) pending--;
}

void dropped(struct conn *c, enum stage stage) {
  if (stage == READY) {
    ready--;
    if (c->asked > c->answered && outstanding > 0) outstanding--;
  }
  if (stage != READY || churn_stage == READY) pending--;
  int rested = may_rest && stage == READY && c->asked == c->answered;
  if (!ending && !rested) *(stage == READY ? &count.lost : &count.refused) += 1;
}

void answered(struct conn *c, uint64_t number) {
  if (number == 0 || number != c->answered + 1 || number > c->asked) {
    count.wrong++;
    if (count.wrong < 4) fprintf(stderr, "answer %llu instead of %llu\n", (unsigned long long)number, (unsigned long long)c->answered + 1);
  }
  c->answered = c->asked;
  outstanding--;
  count.answers++;
  if (in_window) {
    window_answers++;
    if (sample_count < MAX_SAMPLES) samples[sample_count++] = (uint32_t)((nanoseconds() - c->due) / 1000);
  }
  if (mode == CLOSED_LOOP) {
    outstanding++;
    ask(c, nanoseconds());
  } else if (mode == OPEN_LOOP) free_conns[free_count++] = c;
}

/** An agent asks for nothing while it waits for commands, so the samples are free. */
void pushed(uint64_t due) {
  if (!in_window && sample_count < MAX_SAMPLES) samples[sample_count++] = (uint32_t)((nanoseconds() - due) / 1000);
}

static int by_value(const void *a, const void *b) { return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b); }
static double quantile(double q) { return sample_count ? samples[(int)(q * (sample_count - 1))] / 1000.0 : 0; }

static void say(const char *event, const char *more) {
  char meters[4096];
  print_meters(meters, sizeof meters);
  printf("{\"event\":\"%s\",\"ready\":%d,\"opened\":%d,\"arrived\":%d,\"answers\":%llu,\"wrong\":%llu,\"refused\":%llu,\"lost\":%llu,\"errors\":%llu,\"commands\":%llu,\"acks\":%llu,"
         "\"applied\":%llu,\"duplicates\":%llu,%s%s}\n",
         event, ready, opened, arrived, (unsigned long long)count.answers, (unsigned long long)count.wrong, (unsigned long long)count.refused,
         (unsigned long long)count.lost, (unsigned long long)count.errors, (unsigned long long)count.commands, (unsigned long long)count.acks,
         (unsigned long long)count.applied, (unsigned long long)count.duplicates, more, meters);
  fflush(stdout);
}

/** Dials that many sockets, at most `width` at a time, and waits for the last. */
static void raise_sockets(int from, int to, int width) {
  uint64_t end = nanoseconds() + CONNECT_NS;
  for (int next = from; (next < to || pending > 0) && nanoseconds() < end;) {
    while (next < to && pending < width) {
      struct conn *c = &conns[next++];
      if (c->fd >= 0) continue;
      pending++;
      if (dial(c) < 0) pending--, count.refused++;
    }
    attend(5 * MS);
  }
}

static void connect_all(int to, int width) {
  char more[64];
  uint64_t start = nanoseconds();
  sample_meters();
  raise_sockets(0, to < capacity ? to : capacity, width);
  sample_meters();
  snprintf(more, sizeof more, "\"windowNs\":%llu,", (unsigned long long)(nanoseconds() - start));
  say("connected", more);
}

static void churn(int number, int width, enum stage stage) {
  char more[64];
  uint64_t start = nanoseconds();
  arrived = 0;
  churn_stage = stage;
  sample_meters();
  raise_sockets(0, number < capacity ? number : capacity, width);
  sample_meters();
  snprintf(more, sizeof more, "\"windowNs\":%llu,", (unsigned long long)(nanoseconds() - start));
  say("churned", more);
  churn_stage = IDLE;
}

/** Sends the requests that are due; returns the time until the next. */
static int64_t keep_pace(uint64_t start, uint64_t *sent, double rate) {
  uint64_t now = nanoseconds();
  while (free_count > 0 && start + (uint64_t)(*sent * 1e9 / rate) <= now) {
    struct conn *c = free_conns[0];
    memmove(free_conns, free_conns + 1, --free_count * sizeof *free_conns);
    outstanding++;
    ask(c, start + (uint64_t)((*sent)++ * 1e9 / rate));
  }
  int64_t wait = (int64_t)(start + (uint64_t)(*sent * 1e9 / rate) - now);
  return wait < 0 || wait > (int64_t)MS ? (int64_t)MS : wait;
}

static void pass(uint64_t until, uint64_t start, uint64_t *sent, double rate) {
  while (nanoseconds() < until) attend(mode == OPEN_LOOP ? keep_pace(start, sent, rate) : (int64_t)MS);
}

static void run(int warm_ms, int window_ms, int connections, double rate) {
  char more[512];
  uint64_t sent = 0, start = nanoseconds(), begin = start + warm_ms * MS, end;
  active = 0;
  window_answers = sample_count = free_count = 0;
  mode = rate > 0 ? OPEN_LOOP : CLOSED_LOOP;
  for (int i = 0; i < capacity && active < connections; i++) {
    if (conns[i].stage != READY) continue;
    active++;
    if (mode == OPEN_LOOP) free_conns[free_count++] = &conns[i];
    else {
      outstanding++;
      ask(&conns[i], nanoseconds());
    }
  }
  pass(begin, start, &sent, rate);
  sample_meters();
  begin = nanoseconds();
  in_window = 1;
  pass(begin + window_ms * MS, start, &sent, rate);
  in_window = 0;
  end = nanoseconds();
  sample_meters();
  mode = RESTING;
  for (uint64_t late = end + DRAIN_NS; outstanding > 0 && nanoseconds() < late;) attend(MS);
  qsort(samples, sample_count, sizeof *samples, by_value);
  snprintf(more, sizeof more, "\"active\":%d,\"windowNs\":%llu,\"windowAnswers\":%llu,\"missing\":%llu,\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"p999Ms\":%.3f,", active,
           (unsigned long long)(end - begin), (unsigned long long)window_answers, (unsigned long long)outstanding, quantile(.5), quantile(.99), quantile(.999));
  outstanding = 0;
  say("ran", more);
}

/** Reports the time from planned request to push since the last such order. */
static void pushes(void) {
  char more[96];
  qsort(samples, sample_count, sizeof *samples, by_value);
  snprintf(more, sizeof more, "\"windowAnswers\":%d,\"p50Ms\":%.3f,\"p99Ms\":%.3f,", sample_count, quantile(.5), quantile(.99));
  sample_count = 0;
  say("pushes", more);
}

/** Writes for each active connection its number, the number of its last answer and the random value of that. */
static void report(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; file && i < capacity; i++)
    if (conns[i].stage == READY) fprintf(file, "%d %llu %u\n", i, (unsigned long long)(conns[i].answered - conns[i].first), conns[i].value);
  if (file) fclose(file);
  say("reported", "");
}

void command(char *line) {
  char word[16] = "", text[512] = "";
  int a = 0, b = 0, c = 0;
  double rate = 0;
  if (!samples) samples = malloc(MAX_SAMPLES * sizeof *samples), free_conns = malloc(capacity * sizeof *free_conns);
  sscanf(line, "%15s", word);
  if (!strcmp(word, "watch") && sscanf(line, "%*s %500s %d", text, &a) == 2) {
    watch(text, a);
    say("watching", "");
  } else if (!strcmp(word, "requests") && sscanf(line, "%*s %500s", text) == 1) {
    if (load_requests(text) <= 0) count.errors++;
    say("loaded", "");
  } else if (!strcmp(word, "connect") && sscanf(line, "%*s %d %d", &a, &b) == 2) connect_all(a, b);
  else if (!strcmp(word, "churn") && sscanf(line, "%*s %d %d %500s", &a, &b, text) == 3) churn(a, b, strcmp(text, "open") ? READY : OPENING);
  else if (!strcmp(word, "run") && sscanf(line, "%*s %d %d %d %lf %d", &a, &b, &c, &rate, &mixed_percent) == 5) run(a, b, c, rate);
  else if (!strcmp(word, "cut")) {
    for (int i = 0; i < capacity; i++) end(&conns[i]);
    say("cut", "");
  } else if (!strcmp(word, "report") && sscanf(line, "%*s %500s", text) == 1) report(text);
  else if (!strcmp(word, "pushes")) pushes();
  else say(strcmp(word, "tally") ? "unknown" : "tally", "");
}
