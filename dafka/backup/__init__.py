"""Backups of a log's folder, taken while a broker or a store writes to it.

Theory of operation. Everything that a broker knows is in one SQLite database (the rows of topics, groups,
transactions, accounts and small values), and in files of large values, which are written before their row is
committed and never changed. A write round is one transaction. So what one read transaction of SQLite sees,
together with the files that its rows name, is the state after some round: consistent across topics, groups
and transactions, also while clients write. Another process can have such a transaction without the lock of
the folder.

While a read transaction is open the writer cannot end a checkpoint, so it deletes no file of a value that the
transaction sees; but its WAL grows. Therefore files are copied first, without a transaction, in passes over
what is new, until little is left; then one transaction is held for the rest and for the copy of the database
(:mod:`dafka.backup.creating`). A broker that is stopped or started just then deletes files all the same:
missing files are noticed, and a newer transaction is taken.

The folder of backups (:mod:`dafka.backup.repository`) has each file of a value once, under its name, and
each block of a database once, by its SHA-256; a backup is a list of those. It exists from the moment at which
its list is renamed into place. A process that was killed before leaves files that the next one takes up.
"""
