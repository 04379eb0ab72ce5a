-- What this database holds: one row. A program whose schema number is below oldest must not use it, and one whose
-- number is above version has migrations to apply first. Migrators take turns by the lock on this row.
CREATE TABLE IF NOT EXISTS dbjobs_installation (
  id          integer NOT NULL PRIMARY KEY CHECK (id = 1),
  version     integer NOT NULL,                                -- the newest migration that was applied
  oldest      integer NOT NULL,                                -- the oldest schema number that a program may have been built for
  repeatable  text,                                            -- digest of the texts of the views that were brought in last; NULL: none were
  instance    text,                                            -- which database this is; a tick told otherwise claims nothing
  owners      integer NOT NULL DEFAULT 0 CHECK (owners IN (0, 1)),  -- always 0: SQLite has no users
  migrated_at text NOT NULL
) STRICT;
