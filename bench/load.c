/*
 * The load generator of the benchmark: sends prepared frames and counts responses.
 *
 *   load send HOST PORT FRAMES CONNECTIONS INFLIGHT REQUESTS SECONDS ERROR_AT
 *       FRAMES is a file of length-prefixed requests. Every connection sends them in a circle with at most INFLIGHT
 *       requests in flight, until REQUESTS have a response or SECONDS have passed. If ERROR_AT >= 0, the two bytes
 *       at this position of a response (counted from its length field) must be zero. Prints one line of JSON.
 *   load tls-send ...                 the same through TLS (compiled with -DWITH_TLS -lssl -lcrypto)
 *   load tls-connect HOST PORT FRAMES CONNECTIONS SECONDS
 *       CONNECTIONS at a time connect, shake hands, send the first frame, wait for its response and close, again and
 *       again for SECONDS. Prints the number of those that were answered.
 *   load echo PORT ANSWER_BYTES
 *       a bare server that responds to each frame with ANSWER_BYTES of zeros: the best that the machine allows.
 *
 * It knows only the four bytes of length of Kafka's protocol, to leave most processor time to the broker.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#else
typedef void SSL;
#endif

#define CONNECTIONS_MAX 4096
#define RECEIVE_BYTES (1 << 20)
#define LATENCIES_MAX (1 << 22)
#define STALL_MS 20000

typedef struct {
    int fd;
    size_t next;          /* frame to send next (index into the circle) */
    size_t sent_bytes;    /* bytes of the current run that are sent */
    size_t run_end;       /* first frame after the current run; 0 = no run */
    long unanswered;
    double since;         /* when the last request left (only with one in flight) */
    size_t have;          /* bytes of an incomplete response, kept in `buffer` */
    size_t skip;          /* bytes of a large response still to come */
    char *buffer;
    int wants_out;
    SSL *ssl; /* NULL: plaintext */
    int is_shaken;
} Connection;

static char *frames;
static size_t *starts; /* starts[i] = offset of frame i; starts[count] = end */
static size_t frame_count;
static long requests_max, issued, answered, errors;
static uint64_t bytes_out, bytes_in;
static int error_at, inflight, first_error;
static float *latencies_us;
static long latency_count;
static int epoll_fd;

#ifdef WITH_TLS
static SSL_CTX *tls;

static void begin_tls(void) {
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(tls, 1);
    SSL_CTX_set_default_read_buffer_len(tls, 1 << 17);
}

/* The result of an operation as a system call would give it. */
static ssize_t as_call(SSL *ssl, int n) {
    if (n > 0) return n;
    int reason = SSL_get_error(ssl, n);
    errno = 0;
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) errno = EAGAIN;
    return reason == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}
#endif

static ssize_t send_to(Connection *c, const char *data, size_t size) {
#ifdef WITH_TLS
    if (c->ssl) {
        ERR_clear_error();
        return as_call(c->ssl, SSL_write(c->ssl, data, size > (1 << 24) ? 1 << 24 : (int)size));
    }
#endif
    return send(c->fd, data, size, MSG_NOSIGNAL);
}

static ssize_t receive_from(Connection *c, char *data, size_t size) {
#ifdef WITH_TLS
    if (c->ssl) {
        ERR_clear_error();
        return as_call(c->ssl, SSL_read(c->ssl, data, (int)size));
    }
#endif
    return recv(c->fd, data, size, 0);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "bad data");
    exit(1);
}

static uint32_t length_at(const char *p) {
    uint32_t n;
    memcpy(&n, p, 4);
    return ntohl(n);
}

static void read_frames(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat s;
    if (fd < 0 || fstat(fd, &s)) die(path);
    frames = malloc(s.st_size);
    for (size_t done = 0; done < (size_t)s.st_size;) {
        ssize_t n = read(fd, frames + done, s.st_size - done);
        if (n <= 0) die(path);
        done += n;
    }
    close(fd);
    starts = malloc(sizeof(size_t) * (s.st_size / 5 + 2));
    size_t at = 0;
    while (at + 4 <= (size_t)s.st_size) {
        starts[frame_count++] = at;
        at += 4 + length_at(frames + at);
    }
    errno = 0;
    if (!frame_count || at != (size_t)s.st_size) die("frames do not add up");
    starts[frame_count] = at;
}

static int connect_to(const char *host, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, host, &a.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void watch(Connection *c, int out) {
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (c->wants_out != out) epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
    c->wants_out = out;
}

/* Sends as many frames as INFLIGHT allows; neighbouring frames leave in one call. */
static void pump(Connection *c, int stopping) {
    for (;;) {
        if (!c->run_end) {
            long room = inflight - c->unanswered;
            if (room > requests_max - issued) room = requests_max - issued;
            if (room <= 0 || stopping) break;
            if ((size_t)room > frame_count - c->next) room = frame_count - c->next;
            c->run_end = c->next + room;
            c->sent_bytes = 0;
            c->unanswered += room;
            issued += room;
            if (inflight == 1) c->since = now();
        }
        size_t from = starts[c->next] + c->sent_bytes, left = starts[c->run_end] - from;
        ssize_t n = send_to(c, frames + from, left);
        if (n < 0) {
            if (errno != EAGAIN) die("send");
            watch(c, 1);
            return;
        }
        bytes_out += n;
        c->sent_bytes += n;
        if ((size_t)n < left) continue;
        c->next = c->run_end == frame_count ? 0 : c->run_end;
        c->run_end = 0;
    }
    watch(c, 0);
}

static void one_answer(Connection *c, const char *answer, size_t size) {
    c->unanswered--;
    answered++;
    if (inflight == 1 && latency_count < LATENCIES_MAX) latencies_us[latency_count++] = (now() - c->since) * 1e6;
    if (error_at >= 0 && (size < (size_t)error_at + 2 || answer[error_at] || answer[error_at + 1])) {
        if (!errors++ && size >= (size_t)error_at + 2) first_error = (unsigned char)answer[error_at + 1];
    }
}

/* Counts complete responses; of a response that exceeds the buffer it reads only the beginning. Returns 0 if there
   was nothing to read. */
static int take_once(Connection *c) {
    ssize_t n = receive_from(c, c->buffer + c->have, RECEIVE_BYTES - c->have);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) die("connection closed by the broker");
    bytes_in += n;
    char *p = c->buffer, *end = c->buffer + c->have + n;
    if (c->skip) {
        size_t skipped = c->skip < (size_t)n ? c->skip : (size_t)n;
        c->skip -= skipped;
        p += skipped;
    }
    while (end - p >= 4) {
        size_t size = 4 + (size_t)length_at(p);
        if (size > (size_t)(end - p)) {
            if (size <= RECEIVE_BYTES) break;
            one_answer(c, p, end - p);
            c->skip = size - (end - p);
            p = end;
            break;
        }
        one_answer(c, p, size);
        p += size;
    }
    c->have = end - p;
    if (c->have && p != c->buffer) memmove(c->buffer, p, c->have);
    return 1;
}

/* OpenSSL may have read more than it returned, which epoll does not know. */
static void take(Connection *c) {
    while (take_once(c) && c->ssl && !(inflight == 1 && !c->unanswered)) {}
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(double share) {
    return latency_count ? latencies_us[(long)(share * (latency_count - 1))] : 0;
}

static void report(double seconds) {
    double sum = 0;
    for (long i = 0; i < latency_count; i++) sum += latencies_us[i];
    qsort(latencies_us, latency_count, sizeof(float), by_value);
    printf("{\"requests\": %ld, \"seconds\": %.6f, \"bytes_out\": %llu, \"bytes_in\": %llu, \"errors\": %ld, \"first_error\": %d, "
           "\"mean_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f}\n",
           answered, seconds, (unsigned long long)bytes_out, (unsigned long long)bytes_in, errors, first_error,
           latency_count ? sum / latency_count : 0, percentile(0.5), percentile(0.99));
}

/* One request at a time on one blocking socket: no epoll between a response and the next request. */
static double one_by_one(Connection *c, double seconds) {
    double begin = now(), end = begin + seconds;
    fcntl(c->fd, F_SETFL, 0);
    while (issued < requests_max && now() < end) {
        pump(c, 0);
        while (c->unanswered) take(c);
    }
    return now() - begin;
}

static double all_together(Connection *all, int connections, double seconds) {
    struct epoll_event events[256];
    double begin = now(), end = begin + seconds, last = begin;
    int stopping = 0;
    for (int i = 0; i < connections; i++) pump(&all[i], 0);
    while (answered < issued || (!stopping && issued < requests_max)) {
        int n = epoll_wait(epoll_fd, events, 256, STALL_MS);
        errno = 0;
        if (n == 0) die("no answer for 20 s");
        last = now();
        stopping = stopping || last > end;
        for (int i = 0; i < n; i++) {
            Connection *c = events[i].data.ptr;
            if (events[i].events & ~EPOLLOUT) take(c);
            pump(c, stopping);
        }
    }
    return last - begin;
}

static int send_load(char **v, int with_tls) {
    const char *host = v[0];
    int port = atoi(v[1]), connections = atoi(v[3]);
    read_frames(v[2]);
    inflight = atoi(v[4]);
    requests_max = atol(v[5]);
    double seconds = atof(v[6]);
    error_at = atoi(v[7]);
    if (connections < 1 || connections > CONNECTIONS_MAX) die("connections");
    latencies_us = malloc(sizeof(float) * LATENCIES_MAX);
    epoll_fd = epoll_create1(0);
    Connection *all = calloc(connections, sizeof(Connection));
    for (int i = 0; i < connections; i++) {
        Connection *c = &all[i];
        c->fd = connect_to(host, port);
        c->buffer = malloc(RECEIVE_BYTES);
#ifdef WITH_TLS
        if (with_tls) {
            if (!tls) begin_tls();
            c->ssl = SSL_new(tls);
            SSL_set_fd(c->ssl, c->fd);
            errno = 0;
            if (SSL_connect(c->ssl) != 1) die("TLS handshake");
        }
#else
        if (with_tls) die("compiled without TLS");
#endif
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
    }
    report(connections == 1 && inflight == 1 ? one_by_one(all, seconds) : all_together(all, connections, seconds));
    return 0;
}

#ifdef WITH_TLS
static void reconnect(Connection *c, const char *host, int port) {
    if (c->ssl) {
        SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(c->ssl);
        close(c->fd);
    }
    c->fd = connect_to(host, port);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->ssl = SSL_new(tls);
    SSL_set_fd(c->ssl, c->fd);
    c->is_shaken = 0;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
}

/* Goes on until it must wait. Returns 1 when the response has come. */
static int step(Connection *c) {
    char answer[4096];
    if (!c->is_shaken) {
        ERR_clear_error();
        ssize_t n = as_call(c->ssl, SSL_connect(c->ssl));
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) die("TLS handshake");
        c->is_shaken = 1;
        if (send_to(c, frames, starts[1]) < 0) die("send");
    }
    ssize_t n = receive_from(c, answer, sizeof answer);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) die("connection closed by the broker");
    return 1;
}

static int connect_load(char **v) {
    struct epoll_event events[256];
    const char *host = v[0];
    int port = atoi(v[1]), connections = atoi(v[3]);
    long count = 0;
    read_frames(v[2]);
    begin_tls();
    epoll_fd = epoll_create1(0);
    Connection *all = calloc(connections, sizeof(Connection));
    double begin = now(), end = begin + atof(v[4]), last = begin;
    for (int i = 0; i < connections; i++) {
        reconnect(&all[i], host, port);
        while (step(&all[i])) reconnect(&all[i], host, port);
    }
    while (last < end) {
        int n = epoll_wait(epoll_fd, events, 256, STALL_MS);
        errno = 0;
        if (n == 0) die("no answer for 20 s");
        last = now();
        for (int i = 0; i < n; i++) {
            Connection *c = events[i].data.ptr;
            while (step(c)) {
                count++;
                reconnect(c, host, port);
            }
        }
    }
    printf("{\"connections\": %ld, \"seconds\": %.6f}\n", count, last - begin);
    return 0;
}
#endif

/* The bare server. Frames may arrive in pieces; it reads only their lengths. */
static int echo(char **v) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(v[0])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t answer_bytes = atol(v[1]);
    int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(server, (struct sockaddr *)&a, sizeof a) || listen(server, CONNECTIONS_MAX)) die("bind");
    socklen_t a_size = sizeof a;
    getsockname(server, (struct sockaddr *)&a, &a_size);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    char *buffer = malloc(RECEIVE_BYTES + 4), *answers = calloc(RECEIVE_BYTES, 1);
    uint32_t body = htonl(answer_bytes - 4);
    for (size_t at = 0; at + answer_bytes <= RECEIVE_BYTES; at += answer_bytes) memcpy(answers + at, &body, 4);
    epoll_fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}, events[256];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, server, &e);
    for (;;) {
        int n = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            Connection *c = events[i].data.ptr;
            if (!c) {
                c = calloc(1, sizeof *c);
                c->fd = accept(server, NULL, NULL);
                setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                c->buffer = malloc(4);
                e.data.ptr = c;
                epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
                continue;
            }
            memcpy(buffer, c->buffer, c->have);
            ssize_t got = recv(c->fd, buffer + c->have, RECEIVE_BYTES, 0);
            if (got <= 0) {
                close(c->fd);
                free(c->buffer);
                free(c);
                continue;
            }
            char *p = buffer, *end = buffer + c->have + got;
            size_t due = 0, skipped = c->skip < (size_t)(end - p) ? c->skip : (size_t)(end - p);
            p += skipped;
            c->skip -= skipped;
            if (skipped && !c->skip) due++;
            while (!c->skip && end - p >= 4) {
                size_t size = 4 + (size_t)length_at(p);
                if (size > (size_t)(end - p)) {
                    c->skip = size - (end - p);
                    p = end;
                    break;
                }
                due++;
                p += size;
            }
            c->have = end - p;
            memcpy(c->buffer, p, c->have);
            for (size_t out = due * answer_bytes, sent = 0; sent < out;) {
                ssize_t w = send(c->fd, answers, out - sent > RECEIVE_BYTES ? RECEIVE_BYTES / answer_bytes * answer_bytes : out - sent, MSG_NOSIGNAL);
                if (w < 0) break;
                sent += w;
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 10 && !strcmp(argv[1], "send")) return send_load(argv + 2, 0);
    if (argc == 10 && !strcmp(argv[1], "tls-send")) return send_load(argv + 2, 1);
#ifdef WITH_TLS
    if (argc == 7 && !strcmp(argv[1], "tls-connect")) return connect_load(argv + 2);
#endif
    if (argc == 4 && !strcmp(argv[1], "echo")) return echo(argv + 2);
    fprintf(stderr, "usage: load send|tls-send HOST PORT FRAMES CONNECTIONS INFLIGHT REQUESTS SECONDS ERROR_AT | load echo PORT ANSWER_BYTES\n");
    return 2;
}
