/* The loops of pyzmq_loops.py in C: messages of two frames over one PUB and SUB pair of libzmq.

   libzmq_loops pub COUNT SIZE     prints its port, then messages sent in a second; ends with its input
   libzmq_loops sub COUNT PORT     prints messages received in a second, from the first one to the last */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum { HEADER_OCTETS = 55 }; /* as long as RECORD's: see HEADER of pyzmq_loops.py */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void check(int done)
{
    if (done < 0) {
        fprintf(stderr, "libzmq: %s\n", zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static void *open_socket(void *context, int type, int bound)
{
    int none = 0;
    void *socket = zmq_socket(context, type);
    check(socket ? 0 : -1);
    check(zmq_setsockopt(socket, bound, &none, sizeof none));
    return socket;
}

static void publish(void *context, long count, size_t size)
{
    char header[HEADER_OCTETS] = "Mbench", endpoint[100], subscription[100];
    size_t length = sizeof endpoint;
    char *value = calloc(1, size);
    void *publisher = open_socket(context, ZMQ_XPUB, ZMQ_SNDHWM);
    check(zmq_bind(publisher, "tcp://127.0.0.1:*"));
    check(zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, endpoint, &length));
    printf("%s\n", strrchr(endpoint, ':') + 1);
    fflush(stdout);
    check(zmq_recv(publisher, subscription, sizeof subscription, 0));
    double began = now();
    for (long sent = 0; sent < count; sent++) {
        check(zmq_send(publisher, header, sizeof header, ZMQ_SNDMORE));
        check(zmq_send(publisher, value, size, 0));
    }
    printf("%f\n", count / (now() - began));
    fflush(stdout);
    while (getchar() != EOF)
        ;
    zmq_close(publisher);
    free(value);
}

static void take(void *subscriber, zmq_msg_t *message)
{
    do
        check(zmq_msg_recv(message, subscriber, 0));
    while (zmq_msg_more(message));
}

static void receive(void *context, long count, const char *port)
{
    char address[100];
    zmq_msg_t message;
    void *subscriber = open_socket(context, ZMQ_SUB, ZMQ_RCVHWM);
    check(zmq_setsockopt(subscriber, ZMQ_SUBSCRIBE, "M", 1));
    snprintf(address, sizeof address, "tcp://127.0.0.1:%s", port);
    check(zmq_connect(subscriber, address));
    zmq_msg_init(&message);
    take(subscriber, &message);
    double began = now();
    for (long received = 1; received < count; received++)
        take(subscriber, &message);
    printf("%f\n", (count - 1) / (now() - began));
    zmq_msg_close(&message);
    zmq_close(subscriber);
}

int main(int count, char **arguments)
{
    void *context = zmq_ctx_new();
    if (count != 4)
        return 2;
    if (strcmp(arguments[1], "pub") == 0)
        publish(context, atol(arguments[2]), (size_t)atol(arguments[3]));
    else
        receive(context, atol(arguments[2]), arguments[3]);
    zmq_ctx_term(context);
    return 0;
}
