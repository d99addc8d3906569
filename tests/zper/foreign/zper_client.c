/* What the examples in ZPER's README do, through libzmq: zper_client DOES ADDRESS TOPIC [ARGUMENT...].

   Prints a message as its frames with "|" between them, one a line, and "ok" at its end. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static void *sock;

static void fail (const char *what)
{
    printf ("%s\n", what);
    exit (1);
}

static size_t identity (uint8_t *octets, const char *topic, int mode)
{
    size_t length = strlen (topic);
    uint8_t hint = 0;
    for (size_t i = 0; i < length; i++)
        hint = (uint8_t) (31 * hint + (uint8_t) topic[i]);
    octets[0] = hint;
    octets[1] = (uint8_t) mode;
    octets[2] = (uint8_t) length;
    memcpy (octets + 3, topic, length);
    memset (octets + 3 + length, 0x5a, 16);
    uint32_t unique = (uint32_t) getpid ();
    memcpy (octets + 3 + length, &unique, sizeof unique);
    return 3 + length + 16;
}

static void put (uint8_t *octets, uint64_t value, int size)
{
    for (int i = size - 1; i >= 0; i--, value >>= 8)
        octets[i] = (uint8_t) value;
}

static uint64_t get (const uint8_t *octets, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | octets[i];
    return value;
}

static void send_text (const char *text, int flags)
{
    if (zmq_send (sock, text, strlen (text), flags) < 0)
        fail ("not sent");
}

static void send_number (int64_t value, int size, int flags)
{
    uint8_t octets[8];
    put (octets, (uint64_t) value, size);
    if (zmq_send (sock, octets, (size_t) size, flags) < 0)
        fail ("not sent");
}

static void receive (zmq_msg_t *frame)
{
    zmq_msg_init (frame);
    if (zmq_msg_recv (frame, sock, 0) < 0)
        fail ("nothing has come in time");
}

static int has_more (void)
{
    int more;
    size_t size = sizeof more;
    zmq_getsockopt (sock, ZMQ_RCVMORE, &more, &size);
    return more;
}

static void say_message (void)
{
    int more = 1;
    while (more) {
        zmq_msg_t frame;
        receive (&frame);
        fwrite (zmq_msg_data (&frame), 1, zmq_msg_size (&frame), stdout);
        more = has_more ();
        putchar (more ? '|' : '\n');
        zmq_msg_close (&frame);
    }
    fflush (stdout);
}

static int8_t status (void)
{
    zmq_msg_t frame;
    receive (&frame);
    int8_t code = *(int8_t *) zmq_msg_data (&frame);
    zmq_msg_close (&frame);
    return code;
}

static void write_messages (int mode, int count)
{
    char text[64];
    for (int i = 0; i < count; i++) {
        sprintf (text, "hello %d", i);
        send_text (text, 0);
        if (mode == 2)
            say_message ();
        sprintf (text, "id %d", i);
        send_text (text, ZMQ_SNDMORE);
        sprintf (text, "body %d", i);
        send_text (text, 0);
        if (mode == 2)
            say_message ();
    }
    if (mode == 1)
        say_message ();
}

static void offset (int64_t time, const char *entries)
{
    send_text ("OFFSET", ZMQ_SNDMORE);
    send_number (time, 8, entries ? ZMQ_SNDMORE : 0);
    if (entries)
        send_number (atoi (entries), 4, 0);
    printf ("status %d\n", status ());
    while (has_more ()) {
        zmq_msg_t frame;
        receive (&frame);
        printf ("%lld\n", (long long) get (zmq_msg_data (&frame), 8));
        zmq_msg_close (&frame);
    }
}

static void fetch (int64_t offset, int64_t size)
{
    size_t valid = 1;
    while (valid) {
        send_text ("FETCH", ZMQ_SNDMORE);
        send_number (offset, 8, ZMQ_SNDMORE);
        send_number (size, 8, 0);
        int8_t code = status ();
        if (code != 100) {
            printf ("status %d\n", code);
            return;
        }
        zmq_msg_t frame;
        receive (&frame);
        const uint8_t *octets = zmq_msg_data (&frame);
        size_t end = zmq_msg_size (&frame), place = 0, begins = 0;
        valid = 0;
        while (place + 2 <= end) {
            uint8_t flags = octets[place];
            size_t head = flags & 2 ? 9 : 2;
            if (place + head > end)
                break;
            uint64_t length = get (octets + place + 1, (int) head - 1);
            if (length > end - place - head)
                break;
            place += head + length;
            if (flags & 1)
                continue;
            for (size_t at = begins; at < place;) {
                size_t own = octets[at] & 2 ? 9 : 2;
                uint64_t payload = get (octets + at + 1, (int) own - 1);
                fwrite (octets + at + own, 1, payload, stdout);
                putchar (octets[at] & 1 ? '|' : '\n');
                at += own + payload;
            }
            valid = begins = place;
        }
        offset += (int64_t) valid;
        zmq_msg_close (&frame);
    }
    printf ("offset %lld\n", (long long) offset);
}

static void stream (int64_t offset, int count)
{
    send_text ("FETCH", ZMQ_SNDMORE);
    send_number (offset, 8, ZMQ_SNDMORE);
    send_number (-1, 8, 0);
    printf ("status %d\n", status ());
    while (count--)
        say_message ();
}

static void acks (int count)
{
    while (count--) {
        zmq_msg_t frame;
        for (int i = 0; i < 2; i++) {
            receive (&frame);
            fwrite (zmq_msg_data (&frame), 1, zmq_msg_size (&frame), stdout);
            putchar ('|');
            zmq_msg_close (&frame);
        }
        receive (&frame);
        printf ("%lld\n", (long long) get (zmq_msg_data (&frame), 8));
        zmq_msg_close (&frame);
        fflush (stdout);
    }
}

static int type_of (const char *kind)
{
    return !strcmp (kind, "DEALER") ? ZMQ_DEALER : !strcmp (kind, "REQ") ? ZMQ_REQ
         : !strcmp (kind, "PUSH")   ? ZMQ_PUSH   : !strcmp (kind, "PULL") ? ZMQ_PULL : ZMQ_SUB;
}

int main (int count, char **given)
{
    const char *does = given[1], *topic = given[3];
    int writes = !strcmp (does, "write");
    const char *kind = writes || !strcmp (does, "relay") ? given[4] : !strcmp (does, "acks") ? "SUB"
                     : !strcmp (does, "nodes") ? "REQ" : "DEALER";
    int mode = writes ? atoi (given[5]) : 0, timeout = 30000;
    uint8_t name[256];
    void *context = zmq_ctx_new ();
    sock = zmq_socket (context, type_of (kind));
    zmq_setsockopt (sock, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    if (type_of (kind) == ZMQ_SUB)
        zmq_setsockopt (sock, ZMQ_SUBSCRIBE, topic, strlen (topic));
    else
        zmq_setsockopt (sock, ZMQ_IDENTITY, name, identity (name, topic, mode));
    zmq_connect (sock, given[2]);
    if (writes)
        write_messages (mode, atoi (given[6]));
    else if (!strcmp (does, "offset"))
        offset (atoll (given[4]), count > 5 ? given[5] : NULL);
    else if (!strcmp (does, "fetch"))
        fetch (atoll (given[4]), atoll (given[5]));
    else if (!strcmp (does, "stream"))
        stream (atoll (given[4]), atoi (given[5]));
    else if (!strcmp (does, "relay"))
        for (int i = 0; i < atoi (given[5]); i++)
            say_message ();
    else if (!strcmp (does, "acks"))
        acks (atoi (given[4]));
    else {
        send_text ("NODES", 0);
        printf ("status %d\n", status ());
        say_message ();
    }
    zmq_close (sock);
    zmq_ctx_term (context);
    printf ("ok\n");
    return 0;
}
