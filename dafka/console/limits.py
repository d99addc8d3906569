"""What bounds the console, whatever a browser does."""

CONNECTIONS = 128  # of browsers at a time; further ones wait in the system's queue
STREAMS = 32  # searches, followed topics and downloads at a time
READERS = 4  # pages of records that are read at a time
SOCKET_SECONDS = 30.0  # that a browser may take to send or take the next octets
BODY = 8 * 1024 * 1024  # octets of a request
TOPICS_SHOWN = 200  # rows in a page of a list
PARTITIONS_ASKED = 2000  # whose offsets are looked up for one page of a list
PARTITIONS_READ = 256  # of a topic that are read together
PAGE = 500  # records in a page
PAGE_OCTETS = 32 * 1024 * 1024  # of batches that are read for one page
FETCH_OCTETS = 1024 * 1024  # of batches that are read from one partition at a time
SHOWN_OCTETS = 4096  # of a key, a value or a header; more with a record of its own
WHOLE_OCTETS = 4 * 1024 * 1024  # of a value in an answer; more as a download
HEADERS_SHOWN = 100
FOUND = 1000  # records that a search shows
FOLLOWED = 200  # records in one event of a followed topic
FOLLOW_PAUSE = 0.1  # seconds between two of them
BEHIND = 5000  # records that a follower may be behind; then it goes on at the end
PRODUCED = 10_000  # records in one request
EXPRESSION = 2000  # characters
SAMPLE_SECONDS = 1.0  # that totals for the overview are as good as new
SESSIONS = 256
SESSIONS_OF_ONE = 16  # of one account: then its own oldest one ends, and nobody else's
CREDENTIAL = 1000  # characters of a name or a password
SESSION_SECONDS = 8 * 3600.0  # without a request
LOGINS_AT_ONCE = 4
