import java.nio.ByteBuffer;
import java.util.UUID;
import org.zeromq.ZMQ;

/**
 * What the Java examples in ZPER's README do: ZperClient DOES ADDRESS TOPIC [ARGUMENT...].
 *
 * Prints a message as its frames with "|" between them, one a line, and "ok" at its end.
 */
public class ZperClient {
    static ZMQ.Socket socket;

    /**
     * Has a connection begun anew when its handshake does not end: JeroMQ 0.6.0 sends no greeting on about one
     * of 20 new connections, also to a port that only listens, and waits for 30 s (zeromq/jeromq#1022). JeroMQ 0.3.5 has neither the fault nor the setting.
     */
    static void beginAnew(ZMQ.Socket socket) throws Exception {
        try {
            ZMQ.Socket.class.getMethod("setHandshakeIvl", int.class).invoke(socket, 5000);
        } catch (NoSuchMethodException olderVersion) {
            return;
        }
    }

    static byte[] identity(String topic, int mode) {
        UUID unique = UUID.randomUUID();
        ByteBuffer octets = ByteBuffer.allocate(3 + topic.length() + 16);
        octets.put((byte) topic.hashCode()).put((byte) mode).put((byte) topic.length()).put(topic.getBytes());
        octets.putLong(unique.getMostSignificantBits()).putLong(unique.getLeastSignificantBits());
        return octets.array();
    }

    static byte[] bytes(long value) {
        return ByteBuffer.allocate(8).putLong(value).array();
    }

    static long number(byte[] octets) {
        return ByteBuffer.wrap(octets).getLong();
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static byte[] receive() {
        byte[] frame = socket.recv(0);
        if (frame == null) {
            say("nothing has come in time");
            System.exit(1);
        }
        return frame;
    }

    static String message() {
        StringBuilder text = new StringBuilder(new String(receive()));
        while (socket.hasReceiveMore())
            text.append("|").append(new String(receive()));
        return text.toString();
    }

    /** KIND MODE COUNT: writes COUNT messages of one frame and as many of two. */
    static void write(String kind, int mode, int count) {
        for (int i = 0; i < count; i++) {
            socket.send(("hello " + i).getBytes(), 0);
            if (mode == 2)
                say(message());
            socket.send(("id " + i).getBytes(), ZMQ.SNDMORE);
            socket.send(("body " + i).getBytes(), 0);
            if (mode == 2)
                say(message());
        }
        if (mode == 1)
            say(message());
    }

    /** TIME [ENTRIES] */
    static void offset(long time, String entries) {
        socket.send("OFFSET".getBytes(), ZMQ.SNDMORE);
        socket.send(bytes(time), entries == null ? 0 : ZMQ.SNDMORE);
        if (entries != null)
            socket.send(ByteBuffer.allocate(4).putInt(Integer.parseInt(entries)).array(), 0);
        say("status " + receive()[0]);
        while (socket.hasReceiveMore())
            say("" + number(receive()));
    }

    /** OFFSET SIZE: fetches super frames of so many octets, as long as they have messages. */
    static void fetch(long offset, long size) {
        while (true) {
            socket.send("FETCH".getBytes(), ZMQ.SNDMORE);
            socket.send(bytes(offset), ZMQ.SNDMORE);
            socket.send(bytes(size), 0);
            byte status = receive()[0];
            if (status != 100) {
                say("status " + status);
                return;
            }
            ByteBuffer octets = ByteBuffer.wrap(receive());
            int valid = 0;
            StringBuilder text = new StringBuilder();
            while (octets.remaining() >= 2) {
                int flags = octets.get();
                if ((flags & 2) != 0 && octets.remaining() < 8)
                    break;
                long length = (flags & 2) != 0 ? octets.getLong() : octets.get() & 0xff;
                if (length > octets.remaining())
                    break;
                byte[] payload = new byte[(int) length];
                octets.get(payload);
                text.append(new String(payload));
                if ((flags & 1) != 0) {
                    text.append("|");
                    continue;
                }
                say(text.toString());
                text.setLength(0);
                valid = octets.position();
            }
            if (valid == 0)
                break;
            offset += valid;
        }
        say("offset " + offset);
    }

    /** OFFSET COUNT */
    static void stream(long offset, int count) {
        socket.send("FETCH".getBytes(), ZMQ.SNDMORE);
        socket.send(bytes(offset), ZMQ.SNDMORE);
        socket.send(bytes(-1L), 0);
        say("status " + receive()[0]);
        for (int i = 0; i < count; i++)
            say(message());
    }

    /** COUNT */
    static void acks(int count) {
        for (int i = 0; i < count; i++) {
            String topic = new String(receive());
            String id = new String(receive());
            say(topic + "|" + id + "|" + number(receive()));
        }
    }

    public static void main(String[] given) throws Exception {
        String does = given[0], topic = given[2];
        String kind = does.equals("write") || does.equals("relay") ? given[3] : does.equals("acks") ? "SUB" : "DEALER";
        if (does.equals("nodes"))
            kind = "REQ";
        int mode = does.equals("write") ? Integer.parseInt(given[4]) : 0;
        ZMQ.Context context = ZMQ.context(1);
        socket = context.socket((Integer) ZMQ.class.getField(kind).get(null));
        socket.setReceiveTimeOut(30000);
        beginAnew(socket);
        if (kind.equals("SUB"))
            socket.subscribe(topic.getBytes());
        else
            socket.setIdentity(identity(topic, mode));
        socket.connect(given[1]);
        if (does.equals("write"))
            write(kind, mode, Integer.parseInt(given[5]));
        else if (does.equals("offset"))
            offset(Long.parseLong(given[3]), given.length > 4 ? given[4] : null);
        else if (does.equals("fetch"))
            fetch(Long.parseLong(given[3]), Long.parseLong(given[4]));
        else if (does.equals("stream"))
            stream(Long.parseLong(given[3]), Integer.parseInt(given[4]));
        else if (does.equals("relay"))
            for (int i = 0; i < Integer.parseInt(given[4]); i++)
                say(message());
        else if (does.equals("acks"))
            acks(Integer.parseInt(given[3]));
        else {
            socket.send("NODES".getBytes(), 0);
            say("status " + receive()[0]);
            say(message());
        }
        socket.close();
        context.term();
        say("ok");
    }
}
