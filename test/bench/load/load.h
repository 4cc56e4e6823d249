// Shared by the parts of the load generator: a connection, the interface of a protocol, and the counters of a run.
#ifndef LOAD_H
#define LOAD_H
#include <stddef.h>
#include <stdint.h>

enum stage { IDLE, CONNECTING, OPENING, GREETING, READY };

struct protocol;

struct conn {
  int fd;
  int number;            // index of the connection and of its identity
  enum stage stage;
  uint32_t mask;
  uint64_t asked;        // number of the last request
  uint64_t answered;     // number of the last answer
  uint64_t first;        // number of the first request of the open socket
  uint64_t due;          // planned time of the oldest unanswered request, ns
  uint32_t value;        // random value of the last request
  uint8_t *in;           // an unfinished frame
  int in_length;
  uint8_t *out;          // bytes that the kernel has not accepted yet
  int out_length;
  char expected[80];     // text that the answer must contain
};

/** The protocol of one kind of server. `take` returns the number of bytes it used, 0 if it needs more, -1 for a broken peer. */
struct protocol {
  const char *name;
  void (*open)(struct conn *);
  int (*take)(struct conn *, uint8_t *bytes, int length);
  void (*ask)(struct conn *);
};

extern const struct protocol ws_protocol, agent_protocol, socketio_protocol, mqtt_protocol, http_protocol;

struct identity { char agent[64], tenant[64], secret[128]; };

struct counters {
  uint64_t answers, wrong, refused, lost, errors;
  uint64_t commands, acks, applied, duplicates;
};
extern struct counters count;
extern int mixed_percent;
/** A server of this kind may close an idle connection without that counting as lost. */
extern int may_rest;
extern struct identity *identities;
extern const char *host_name;
extern struct conn *conns;
extern int capacity;

// sockets.c
int dial(struct conn *);
void put(struct conn *, const void *bytes, int length);
void drop(struct conn *);
/** Waits for the network at most that long and handles its events; returns whether a command line waits. */
int attend(int64_t wait_ns);
int open_sockets(const char *address, const struct protocol *);
void ask(struct conn *, uint64_t due);
uint64_t nanoseconds(void);
uint64_t noise(void);
const char *timestamp(void);

// runs.c: called by the protocols and the sockets
void reached(struct conn *, enum stage);
void answered(struct conn *, uint64_t number);
void dropped(struct conn *, enum stage);
/** A command whose request was planned for that time has arrived. */
void pushed(uint64_t due);
void command(char *line);

// websocket.c
struct frame { int opcode; uint8_t *bytes; int length; int total; };
int read_frame(uint8_t *bytes, int length, struct frame *);
void send_frame(struct conn *, int opcode, const void *bytes, int length);
void send_text(struct conn *, const char *text, int length);
void send_upgrade(struct conn *, const char *path, const char *headers);
/** The end of the answer's head if it is a 101, 0 if it is incomplete, -1 for anything else. */
int read_upgrade(uint8_t *bytes, int length);
/** The number after a key such as `"ref":"`; 0 if there is none. */
uint64_t number_after(const uint8_t *bytes, int length, const char *key);
int heartbeat(struct conn *, char *text);

// sha256.c
void hmac_hex(const char *key, const char *a, const char *b, char hex[65]);

// http.c
int load_requests(const char *path);

// meter.c
int watch(const char *name, int pid);
void sample_meters(void);
/** Writes the CPU time of each watched tree since the previous sample, as members of a JSON object. */
int print_meters(char *text, int capacity);
#endif
